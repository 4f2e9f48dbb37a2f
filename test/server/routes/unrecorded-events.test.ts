/** What the log says of events that cannot be recorded, while very many machines come. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createEventRecorder } from '#server/routes/fleet.ts'
import { MAC } from '#test/support/server/machine-fixture.ts'

const test = suite('events that are not recorded')

test('each is named but those of every contact, which say each reason once', async () => {
  const said: string[] = []
  let why: string | null = 'the database is away'
  const recordOrCount = async () => {
    if (why !== null) throw new Error(why)
  }
  const log = {
    ...console,
    error: (text: string) => said.push(text),
  }
  const record = createEventRecorder({ journal: { recordOrCount }, log })
  const tell = async (kind: 'netboot.pxe.offered' | 'machine.flash_started') => {
    const by = { subject_id: MAC, actor: 'pxe-client', ip: '192.0.2.1' } as const
    await record([{ kind, summary: 'an event', details: {} }], by)
    await new Promise(setImmediate)
  }
  for (let contact = 0; contact < 3; contact += 1) await tell('netboot.pxe.offered')
  await tell('machine.flash_started')
  await tell('machine.flash_started')
  why = 'another server leads'
  await tell('netboot.pxe.offered')
  why = null
  await tell('netboot.pxe.offered')
  why = 'another server leads'
  await tell('netboot.pxe.offered')
  assert.equal(said, [
    'event netboot.pxe.offered: the database is away',
    'event machine.flash_started: the database is away',
    'event machine.flash_started: the database is away',
    'event netboot.pxe.offered: another server leads',
    'event netboot.pxe.offered: another server leads',
  ])
})

test.run()
