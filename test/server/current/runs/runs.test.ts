import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runRemovalRoutes } from '#server/current/runs/run-routes.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, readJson } from '#test/support/server/server.ts'

const test = suite('removing runs')
const MAC = '52:54:00:00:00:01'

async function open() {
  const server = await createTestServer({ routes: runRemovalRoutes })
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  return {
    server,
    ask,
    report: (n: number, fields: Parameters<typeof bodyOf>[0]) =>
      server.request(`/pxe/${MAC}/progress`, asJson(bodyOf({ run: runIdOf(n), ...fields }))),
    remove: async (n: number) =>
      (await ask(`/machines/${MAC}/runs/${runIdOf(n)}`, { method: 'DELETE' })).status,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

test('a run that has ended is removed with its log, and an event says who did it', async () => {
  await using site = await open()
  await site.report(1, { phase: 'failed', reason: 'no space', image: { name: 'debian.img' } })
  const log = `/pxe/${MAC}/log?run=${runIdOf(1)}`
  await site.server.request(log, { method: 'POST', body: 'the last lines' })
  await site.report(2, { phase: 'done' })
  assert.is(await site.remove(1), 204)
  assert.is(await site.remove(1), 404)
  const { runs } = await readJson(site.ask('/runs'))
  assert.equal(
    runs.map(({ id }: { id: string }) => id),
    [runIdOf(2)],
  )
  assert.is((await site.ask(`/machines/${MAC}/runs/${runIdOf(1)}/log`)).status, 404)
  assert.is(await site.server.runs.findLog(MAC, runIdOf(1)), null)
  const [event, ...others] = await site.server.journal.list({
    kind: 'machine.run_deleted',
    limit: 5,
  })
  assert.equal(
    [event?.subject_id, event?.actor, event?.summary, others.length],
    [MAC, 'operator', `A run of ${MAC} was removed from the history: debian.img, failed`, 0],
  )
  assert.is(event?.details?.['run'], runIdOf(1))
})

test('a run that is still running stays', async () => {
  await using site = await open()
  await site.report(1, { phase: 'write', bytes_written: 5 })
  assert.is(await site.remove(1), 409)
  assert.is((await readJson(site.ask('/runs?state=running'))).total, 1)
  await site.report(1, { phase: 'done' })
  assert.is(await site.remove(1), 204)
})

test('a token needs the scope admin', async () => {
  await using site = await open()
  await site.report(1, { phase: 'done' })
  const made = await site.ask(
    '/tokens',
    asJson({ name: 'ci', scopes: ['read', 'machines', 'flash'] }),
  )
  assert.is(made.status, 201)
  const { token } = await made.json()
  const answer = await site.server.request(`/machines/${MAC}/runs/${runIdOf(1)}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${token}` },
  })
  assert.is(answer.status, 403)
})

test.run()
