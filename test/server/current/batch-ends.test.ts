/** The event of a batch of which nothing more is to come: once, with what became of its machines, and again after a retry. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openBatchLab } from '#test/support/batch/batch-lab.ts'
import { readJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('the end of a batch')

test('it is on record once, when the last machine is done, and again after a retry', async () => {
  await using lab = await openBatchLab()
  const ends = async () => (await readJson(lab.ask('/events?kind=batch.ended'))).events
  const untilEnds = (count: number) =>
    waitUntil(
      async () => (await ends()).length === count,
      () => `${count} ends`,
      20_000,
    )
  const { batch: lock } = await lab.bulk('lock')
  await lab.bulk('unlock')
  const id = await lab.arm()
  const machines: readonly { readonly mac: string }[] = (await lab.batch(id)).results
  const finish = async ({ mac }: { readonly mac: string }, end: (mac: string) => unknown) => {
    await lab.boot(mac)
    await lab.plan(mac)
    await end(mac)
  }
  const [first, ...others] = machines
  for (const machine of others) await finish(machine, lab.done)
  assert.equal(await ends(), [])
  if (first !== undefined) await finish(first, lab.fail)
  await untilEnds(1)
  const [end] = await ends()
  assert.is(end.subject_id, id)
  assert.is(end.summary, '2.4.30.img.zst to rack-03 has ended: 3 done, 1 failed')
  assert.is(end.details.armed_by, 'operator')
  assert.is.not(end.subject_id, lock, 'what was done at once has no end')
  await lab.act(id, 'retry')
  // It is seen open before it ends again.
  await waitUntil(
    async () => lab.server.batches?.list()[0]?.ended_at === null,
    () => 'it goes on',
    20_000,
  )
  if (first !== undefined) await finish(first, lab.done)
  await untilEnds(2)
})

test.run()
