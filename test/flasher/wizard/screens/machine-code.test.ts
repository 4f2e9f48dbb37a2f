/** The code on the machine's screen: read by zbarimg from what a terminal shows, and left out where it does not fit. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createMachineCode, findMachineAddress } from '#flasher/wizard/screens/machine-code.ts'

const test = suite('the code of a machine')

const MAC = '52:54:00:a1:00:01'
/** Begins a control sequence. */
const ESCAPE = String.fromCodePoint(27)
const [CELL_WIDTH, CELL_HEIGHT] = [8, 16]

/** Which halves of a cell shine; `R` is a blank in reverse video. */
function shines(character: string, y: number): boolean {
  if (character === 'R') return true
  const isUpper = y < CELL_HEIGHT / 2
  return character === '█' || character === (isUpper ? '▀' : '▄')
}

/** A dark terminal, as a grey picture. */
function drawScreen(given: readonly string[]): Buffer {
  const lines = given.map((line) =>
    line
      .split(ESCAPE)
      .map((part) =>
        part.startsWith('[7m') ? 'R'.repeat(part.length - 3) : part.replace('[0m', ''),
      )
      .join(''),
  )
  const columns = Math.max(...lines.map((line) => line.length)) + 4
  const [width, height] = [columns * CELL_WIDTH, (lines.length + 2) * CELL_HEIGHT]
  const pixels = Buffer.alloc(width * height, 20)
  for (const [row, line] of lines.entries()) {
    for (const [column, character] of [...line].entries()) {
      for (let at = 0; at < CELL_WIDTH * CELL_HEIGHT; at += 1) {
        const [x, y] = [at % CELL_WIDTH, Math.floor(at / CELL_WIDTH)]
        if (!shines(character, y)) continue
        pixels[((row + 1) * CELL_HEIGHT + y) * width + (column + 2) * CELL_WIDTH + x] = 200
      }
    }
  }
  return Buffer.concat([Buffer.from(`P5 ${width} ${height} 255\n`), pixels])
}

async function read(lines: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-code-'))
  try {
    await writeFile(join(folder, 'screen.pgm'), drawScreen(lines))
    const argv = ['--quiet', '--raw', join(folder, 'screen.pgm')]
    return execFileSync('zbarimg', argv, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } finally {
    await rm(folder, { recursive: true })
  }
}

const addressOf = (server: string) => findMachineAddress({ server, mac: MAC }) ?? ''
const SERVERS = [
  'http://10.0.0.1:8080',
  'https://flasher.lab.example',
  'http://[fd00::aaaa:bbbb:cccc:1]:8080',
  'https://proxy.lab.example/Flasher/',
]

for (const unicode of [true, false]) {
  test(`a reader finds the page in it, ${unicode ? 'with' : 'without'} Unicode`, async () => {
    for (const server of SERVERS) {
      const address = addressOf(server)
      const [, text, ...code] = createMachineCode(address, { unicode })({ columns: 120, rows: 60 })
      const typed = server.endsWith('/') ? address : address.toLowerCase()
      assert.match(text ?? '', typed)
      assert.is(await read(code), address)
    }
  })
}

test('it takes the rows that are left, and no more', () => {
  const render = createMachineCode(addressOf('http://10.0.0.1:8080'), { unicode: true })
  const count = (columns: number, rows: number) => render({ columns, rows }).length
  assert.equal(
    [count(80, 16), count(80, 15), count(27, 16), count(40, 2), count(40, 1)],
    [16, 2, 2, 2, 0],
  )
  for (const line of render({ columns: 30, rows: 2 })) assert.ok(line.length < 30)
})

test('without a server or a MAC there is none', () => {
  assert.is(findMachineAddress({ server: null, mac: MAC }), null)
  assert.is(findMachineAddress({ server: 'http://10.0.0.1', mac: null }), null)
  assert.is(findMachineAddress({ server: 'flasher', mac: MAC }), null)
  assert.is(addressOf('http://10.0.0.1:8080'), 'HTTP://10.0.0.1:8080/M/525400A10001')
  assert.is(addressOf('https://a.b/Flasher/'), 'https://a.b/Flasher/m/525400a10001')
})

test.run()
