import { globSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  BOOT_MODES,
  flashesAlways,
  flashesOnce,
  isFlashMode,
  MODES,
} from '#server/current/machines/rules/boot-mode.ts'

const test = suite('boot modes')

test('a flash mode flashes once or always', () => {
  const flashing = BOOT_MODES.filter(isFlashMode)
  assert.equal(flashing, ['flasher-flash-always', 'flasher-flash-once'])
  for (const mode of flashing) assert.is(flashesOnce(mode), !flashesAlways(mode), mode)
  for (const mode of BOOT_MODES.filter((one) => !isFlashMode(one))) {
    assert.not(flashesOnce(mode) || flashesAlways(mode), mode)
  }
})

test('no two modes have the same card', () => {
  const cards = new Set(BOOT_MODES.map((mode) => MODES[mode].card))
  assert.is(cards.size, BOOT_MODES.length)
})

test('the table alone names modes: all else follows from its rows', () => {
  // `ipxe-exit` is the name of a rule as well.
  const literals = BOOT_MODES.filter((mode) => mode !== 'ipxe-exit').map((mode) => `'${mode}'`)
  const files = globSync('runtime/{server,fleet}/**/*.ts').filter(
    (file) => file !== 'runtime/server/current/machines/rules/boot-mode.ts',
  )
  const named = files.filter((file) => {
    const text = readFileSync(file, 'utf8')
    return literals.some((literal) => text.includes(literal))
  })
  assert.equal(named, [])
})

test.run()
