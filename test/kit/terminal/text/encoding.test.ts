import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { displayWidth } from '#kit/foundation/printable.ts'
import { encodeFor, encodeOutput } from '#kit/terminal/text/terminal-style.ts'
import { createPainter } from '#kit/terminal/prompt/painter.ts'

const test = suite('encoding')

test('a terminal for UTF-8 gets what there is', () => {
  for (const env of [{ LANG: 'de_DE.UTF-8' }, { LC_ALL: 'C.utf8', LANG: 'C' }]) {
    assert.is(encodeFor(env)('Größe 日本…'), 'Größe 日本…')
  }
})

test('any other gets ASCII, as wide as it was', () => {
  for (const env of [{}, { LANG: 'C' }, { LC_ALL: 'POSIX', LANG: 'C.UTF-8' }]) {
    const encode = encodeFor(env)
    for (const [text, shown] of [
      ['debian-13.img', 'debian-13.img'],
      ['Größe-é.img', 'Gro?e-e.img'],
      ['e\u0301te\u0301', 'ete'],
      ['日本-\u{1f600}', '????-??'],
      ['\u009b2J', '?2J'],
      ['Rebooting…', 'Rebooting.'],
      [
        '\u001b[1;1H\u001b[31mä\u001b[39m\u001b[K\r\n',
        '\u001b[1;1H\u001b[31ma\u001b[39m\u001b[K\r\n',
      ],
    ] as const) {
      assert.is(encode(text), shown)
      assert.is(displayWidth(shown), displayWidth(text))
    }
  }
})

test('screens and single lines go through it', () => {
  let said = ''
  const output = { columns: 40, rows: 10, write: (text: string) => void (said += text) }
  const env = { TERM: 'vt220' }
  createPainter(output, encodeFor(env)).paint({ lines: ['Größe', 'ok'], cursor: null })
  encodeOutput(output, env).write('日本\n')
  assert.match(said, 'Gro?e')
  assert.match(said, '????\n')
  assert.not.match(said, /[^\0-\u007f]/)
})

test.run()
