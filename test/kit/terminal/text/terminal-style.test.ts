import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { displayWidth } from '#kit/foundation/printable.ts'
import { createPainter } from '#kit/terminal/prompt/painter.ts'
import { createLog } from '#kit/terminal/text/log.ts'
import {
  columnsOf,
  decideTerminalStyle,
  encodeFor,
  encodeOutput,
} from '#kit/terminal/text/terminal-style.ts'

const test = suite('look')
const letters = (env: Readonly<Record<string, string>>, isTTY: boolean) => {
  const { tty, colour, unicode } = decideTerminalStyle(env, isTTY)
  return `${tty ? 'l' : '-'}${colour ? 'c' : '-'}${unicode ? 'u' : '-'}`
}

test('what is asked for and what is there', () => {
  const rows: readonly (readonly [Readonly<Record<string, string>>, boolean, string])[] = [
    [{ TERM: 'xterm', LANG: 'en_US.UTF-8' }, true, 'lcu'],
    [{ TERM: 'xterm', LANG: 'en_US.UTF-8' }, false, '---'],
    [{ TERM: 'dumb', LANG: 'en_US.UTF-8' }, true, '---'],
    [{ TERM: 'xterm', LANG: 'en_US.UTF-8', NO_COLOR: '1' }, true, 'l-u'],
    [{ TERM: 'xterm', LANG: 'en_US.UTF-8', NO_COLOR: '' }, true, 'lcu'],
    [{ TERM: 'linux', LC_ALL: 'C', LANG: 'en_US.UTF-8' }, true, 'lc-'],
    [{ TERM: 'linux', LC_ALL: '', LC_CTYPE: 'de_DE.utf8', LANG: 'C' }, true, 'lc-'],
    [{ TERM: 'screen', LC_ALL: '', LC_CTYPE: 'de_DE.utf8', LANG: 'C' }, true, 'lcu'],
    [{ TERM: 'vt220', LANG: 'en_US.UTF-8' }, true, 'lc-'],
    [{ TERM: 'linux' }, true, 'lc-'],
  ]
  for (const [env, isTTY, found] of rows) assert.is(letters(env, isTTY), found)
})
test('columns stay within reason', () => {
  assert.equal([undefined, 0, 1, 132, 1e9].map(columnsOf), [80, 80, 20, 132, 400])
})
test('failures: one line with the name, the rest below, and nothing that controls the terminal', () => {
  let said = ''
  const stderr = { write: (text: string) => (said += text) }
  const style = { tty: false, colour: false, unicode: false }
  const log = createLog({ program: 'flasher', stderr, style })
  log.fail('qemu-img: no\u001b[2J\nsecond line\n', 'Try again.')
  log.note('n\u0007')
  assert.is(
    said,
    `flasher: qemu-img: no${String.raw`\x1b[2J`}\n  second line\n  Try again.\nflasher: n${String.raw`\x07`}\n`,
  )
})
test('colour only where it is wanted', () => {
  let said = ''
  const stderr = { write: (text: string) => (said += text) }
  const style = { tty: true, colour: true, unicode: true }
  createLog({ program: 'flasher', stderr, style }).fail('no')
  assert.is(said, 'flasher: \u001b[31mno\u001b[39m\n')
})

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
