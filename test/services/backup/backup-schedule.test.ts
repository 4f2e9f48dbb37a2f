import { rm, writeFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startBackupSchedule } from '../../../runtime/services/backup/backup-schedule.ts'
import { openBackupDesk } from '../../support/server/backups.ts'
import { createStateFolder } from '../../support/server/state.ts'

const test = suite('backup schedule')
const START = Date.parse('2026-11-21T06:55:53.000Z')
const HOUR = 3_600_000

async function createDesk() {
  const folder = await createStateFolder()
  const clock = { at: START }
  const now = () => new Date(clock.at)
  const desk = await openBackupDesk(folder, { now })
  desk.settings.current = { enabled: true, cadence: 'daily', retention: 3 }
  const schedule = startBackupSchedule({
    backups: desk.backups,
    store: desk.store,
    settings: () => desk.settings.current,
    now,
  })
  return {
    ...desk,
    clock,
    schedule,
    async [Symbol.asyncDispose]() {
      schedule[Symbol.dispose]()
      await desk[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}
test('makes one at start when it is due, then one a day', async () => {
  await using desk = await createDesk()
  await desk.schedule.tick()
  assert.is(desk.backups.jobs().length, 1)
  assert.is(desk.backups.jobs()[0]?.trigger, 'scheduled')
  assert.is(desk.store.find('backup.last_run_at'), new Date(START).toISOString())
  desk.clock.at += 23 * HOUR
  await desk.schedule.tick()
  assert.is(desk.backups.jobs().length, 1)
  desk.clock.at += HOUR
  await desk.schedule.tick()
  assert.equal(
    desk.backups.jobs().map(({ status }) => status),
    ['completed', 'completed'],
  )
})

test('heeds a change of the settings at its next look', async () => {
  await using desk = await createDesk()
  await desk.schedule.tick()
  desk.clock.at += 30 * HOUR
  desk.settings.current = { ...desk.settings.current, cadence: 'weekly' }
  await desk.schedule.tick()
  desk.settings.current = { ...desk.settings.current, cadence: 'daily', enabled: false }
  await desk.schedule.tick()
  assert.is(desk.backups.jobs().length, 1)
  desk.settings.current = { ...desk.settings.current, enabled: true }
  await desk.schedule.tick()
  assert.is(desk.backups.jobs().length, 2)
})

test('tries again an hour after a failure, not every minute', async () => {
  await using desk = await createDesk()
  await desk.schedule.tick()
  await rm(desk.backupDir, { recursive: true })
  await writeFile(desk.backupDir, 'a file where the folder was')
  desk.clock.at += 24 * HOUR
  for (let minute = 0; minute < 30; minute += 1) {
    await desk.schedule.tick()
    desk.clock.at += 60_000
  }
  assert.is(desk.backups.jobs().filter(({ status }) => status === 'failed').length, 1)
  await rm(desk.backupDir)
  desk.clock.at += 30 * 60_000
  await desk.schedule.tick()
  assert.is(desk.backups.jobs()[0]?.status, 'completed')
})

test.run()
