/** Moves the clock by -20 to +30 years in the middle of everything that a state does, again and again. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createJournal } from '#fleet/state/journal.ts'
import { openBackupFixture } from '#test/support/server/backups.ts'
import { createStateFolder, machineOf, macOf, noteOf } from '#test/support/server/state.ts'

const test = suite('a clock that is moved')
const DAY = 86_400_000
const START = Date.parse('2026-11-21T06:55:53.000Z')
const YEARS = { min: -20, max: 30 }
const retention = () => ({ count: 10_000, days: 90 })

test('loses no event, no backup that was just made, no sighting, and no archive', async () => {
  const moves = fc.array(fc.integer(YEARS), { minLength: 3, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(moves, async (offsets) => {
      await using folder = await createStateFolder()
      let at = START
      const now = () => new Date(at)
      await using fixture = await openBackupFixture(folder, { now })
      fixture.settings.current = { enabled: true, cadence: 'manual', retention: 2 }
      const journal = createJournal(fixture.database, { changes: fixture.changes, now, retention })
      await fixture.machines.update(macOf(1), () => machineOf(1))
      const made: string[] = []
      for (const [index, years] of [0, ...offsets, 0].entries()) {
        at = START + years * 365 * DAY + index * 3_600_000
        await journal.record(noteOf({ summary: `move ${index}` }))
        const job = await fixture.backUp()
        made.unshift(job?.backup_id ?? '')
        at += 60_000
        const seen = now().toISOString()
        fixture.machines.see(macOf(1), { at: seen, ip: '192.0.2.9' })
        assert.is((await fixture.machines.find(macOf(1)))?.last_seen_at, seen)
        await fixture.machines.update(
          macOf(1),
          (before) => before && { ...before, labels: [`l${index}`] },
        )
        assert.is((await fixture.machines.find(macOf(1)))?.last_seen_at, seen)
        const kept = (await fixture.backups.list()).map(({ backup_id }) => backup_id)
        assert.equal(kept, made.slice(0, 2))
        await journal.prune()
        const events = await journal.list({ limit: 500 })
        const moved = events.filter(({ summary }) => /^move \d/.test(summary)).length
        assert.is(moved, index + 1)
      }
    }),
    { numRuns: 8 },
  )
})

test.run()
