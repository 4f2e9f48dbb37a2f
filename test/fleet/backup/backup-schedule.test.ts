import { rm, writeFile } from 'node:fs/promises'
import { mock } from 'node:test'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startBackupSchedule } from '#fleet/backup/backups.ts'
import { openBackupFixture } from '#test/support/server/backups.ts'
import { until } from '#test/support/server/image-cache.ts'
import { createStateFolder } from '#test/support/server/state.ts'

const test = suite('backup schedule')
const START = Date.parse('2026-11-21T06:55:53.000Z')
const HOUR = 3_600_000

async function createFixture() {
  const folder = await createStateFolder()
  const clock = { at: START }
  const now = () => new Date(clock.at)
  const fixture = await openBackupFixture(folder, { now })
  fixture.settings.current = { enabled: true, cadence: 'daily', retention: 3 }
  const schedule = startBackupSchedule({
    backups: fixture.backups,
    store: fixture.store,
    settings: () => fixture.settings.current,
    now,
    elapsed: () => clock.at,
  })
  return {
    ...fixture,
    clock,
    schedule,
    async [Symbol.asyncDispose]() {
      schedule[Symbol.dispose]()
      await fixture[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}
test('makes one at start when it is due, then one a day', async () => {
  await using fixture = await createFixture()
  await fixture.schedule.tick()
  assert.is(fixture.backups.jobs().length, 1)
  assert.is(fixture.backups.jobs()[0]?.trigger, 'scheduled')
  assert.is(fixture.store.find('backup.last_run_at'), new Date(START).toISOString())
  fixture.clock.at += 23 * HOUR
  await fixture.schedule.tick()
  assert.is(fixture.backups.jobs().length, 1)
  fixture.clock.at += HOUR
  await fixture.schedule.tick()
  assert.equal(
    fixture.backups.jobs().map(({ status }) => status),
    ['completed', 'completed'],
  )
})

test('heeds a change of the settings at its next look', async () => {
  await using fixture = await createFixture()
  await fixture.schedule.tick()
  fixture.clock.at += 30 * HOUR
  fixture.settings.current = { ...fixture.settings.current, cadence: 'weekly' }
  await fixture.schedule.tick()
  fixture.settings.current = { ...fixture.settings.current, cadence: 'daily', enabled: false }
  await fixture.schedule.tick()
  assert.is(fixture.backups.jobs().length, 1)
  fixture.settings.current = { ...fixture.settings.current, enabled: true }
  await fixture.schedule.tick()
  assert.is(fixture.backups.jobs().length, 2)
})

test('looks every 60 seconds', async () => {
  mock.timers.enable({ apis: ['setInterval'] })
  try {
    await using fixture = await createFixture()
    await fixture.schedule.tick()
    fixture.clock.at += 24 * HOUR
    mock.timers.tick(59_999)
    fixture.clock.at += 1000
    mock.timers.tick(1)
    const lastRun = () => fixture.store.find('backup.last_run_at')
    await until(() => lastRun() !== new Date(START).toISOString())
    assert.is(lastRun(), new Date(START + 24 * HOUR + 1000).toISOString())
  } finally {
    mock.timers.reset()
  }
})

test('tries again an hour after a failure, not every minute', async () => {
  await using fixture = await createFixture()
  await fixture.schedule.tick()
  await rm(fixture.backupDir, { recursive: true })
  await writeFile(fixture.backupDir, 'a file where the folder was')
  fixture.clock.at += 24 * HOUR
  for (let minute = 0; minute < 30; minute += 1) {
    await fixture.schedule.tick()
    fixture.clock.at += 60_000
  }
  assert.is(fixture.backups.jobs().filter(({ status }) => status === 'failed').length, 1)
  await rm(fixture.backupDir)
  fixture.clock.at += 30 * 60_000
  await fixture.schedule.tick()
  assert.is(fixture.backups.jobs()[0]?.status, 'completed')
})

test.run()
