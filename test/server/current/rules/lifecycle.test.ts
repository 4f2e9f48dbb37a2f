/** Any order of contacts, edits, hours and restarts: what must never happen, does not. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { anySettings } from '#test/support/server/machine-arbitraries.ts'
import { X86_SETS } from '#test/support/server/machine-fixture.ts'
import { anyStep, createLife, plan, type Step } from '#test/support/server/machine-life.ts'

const test = suite('life of a machine')

test('any order of contacts, edits, hours and restarts', () => {
  fc.assert(
    fc.property(
      anySettings,
      fc.array(anyStep, { minLength: 5, maxLength: 60, size: 'max' }),
      (settings, steps) => {
        const life = createLife(settings)
        for (const step of steps) step(life)
      },
    ),
    { numRuns: 20_000 },
  )
})

test('a machine that dies in every live boot ends at its disk, or at a person', () => {
  const anyDeath = fc.constantFrom<readonly Step[]>(
    [],
    [({ fixture }) => fixture.bootFile()],
    [plan],
  )
  fc.assert(
    fc.property(
      anySettings,
      fc.array(anyStep, { maxLength: 30, size: 'max' }),
      fc.array(anyDeath, { minLength: 7, maxLength: 7 }),
      (settings, steps, deaths) => {
        const life = createLife(settings)
        for (const step of steps) step(life)
        life.fixture.surroundings = {
          ...life.fixture.surroundings,
          sets: X86_SETS,
          placeOf: () => null,
        }
        const rules = deaths.map((death) => {
          const { rule, counts } = life.fixture.script()
          for (const step of death) step(life)
          return counts && rule !== 'loop-to-person' ? 'unattended' : rule
        })
        assert.ok(
          rules.some((rule) => rule !== 'unattended'),
          rules.join(' '),
        )
      },
    ),
    { numRuns: 5000 },
  )
})

test.run()
