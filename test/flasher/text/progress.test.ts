import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FlashEvent } from '#engine/flash/rules/flash-plan.ts'
import {
  createProgress,
  fractionOf,
  type ProgressMode,
  renderBar,
  renderEventLine,
  renderEventText,
  renderEventWords,
  renderStatus,
} from '#flasher/text/progress.ts'
import { displayWidth } from '#kit/foundation/printable.ts'
import type { TerminalStyle } from '#kit/terminal/text/terminal-style.ts'

const LOG: TerminalStyle = { tty: false, colour: false, unicode: false }
const TERMINAL: TerminalStyle = { tty: true, colour: true, unicode: true }

const writing = (
  bytes: number,
  note?: string,
  phase: 'write' | 'verify' = 'write',
): FlashEvent => ({
  event: 'writing',
  phase,
  ...(note === undefined ? {} : { note }),
  bytes_read: bytes,
  bytes_written: bytes,
  total_bytes: 1000,
  rate: 10,
  eta_seconds: 5,
})

/** Shows events at given seconds and returns what was written. */
function play(
  mode: ProgressMode,
  style: TerminalStyle,
  events: readonly (readonly [number, FlashEvent])[],
  isTTY = false,
) {
  const said = { stdout: '', stderr: '' }
  let clock = 0
  const progress = createProgress(mode, {
    stdout: { write: (text: string) => (said.stdout += text) },
    stderr: { write: (text: string) => (said.stderr += text), columns: 60, isTTY },
    style,
    storedBytes: () => null,
    now: () => clock,
  })
  for (const [at, event] of events) {
    clock = at
    progress.show(event)
  }
  return said
}

const COURSE: readonly (readonly [number, FlashEvent])[] = [
  [0, { event: 'started', total_bytes: 1000 }],
  [0, writing(0, 'img.zst')],
  [0.05, writing(20)],
  [0.08, writing(30)],
  [0.3, writing(100)],
  [1.5, writing(200)],
  [3, writing(250)],
  [11, writing(290)],
  [21.5, writing(300)],
  [30, { event: 'synced' }],
  [30, { event: 'partprobed' }],
  [30, { event: 'provisioning', note: 'cijoe' }],
  [31, { event: 'done' }],
]

const test = suite('progress')

test('events as the deployed clients spell them', () => {
  const rows: readonly (readonly [FlashEvent, string, string])[] = [
    [
      { event: 'started', total_bytes: 300000 },
      '{"event": "started", "total_bytes": 300000}\n',
      '[started] total_bytes=300000\n',
    ],
    [{ event: 'started', total_bytes: null }, '{"event": "started"}\n', '[started]\n'],
    [{ event: 'synced' }, '{"event": "synced"}\n', '[synced]\n'],
    [
      { event: 'provisioning', note: 'cloud-init' },
      '{"event": "provisioning", "note": "cloud-init"}\n',
      '[provisioning] cloud-init\n',
    ],
    [
      { event: 'failed', note: 'Ü\u001b[31m\n' },
      '{"event": "failed", "note": "\\u00dc\\u001b[31m\\n"}\n',
      `[failed] Ü${String.raw`\x1b[31m\x0a`}\n`,
    ],
    [
      writing(5, 'img'),
      '{"event": "writing", "note": "img", "total_bytes": 1000, "phase": "write", "bytes_read": 5, "bytes_written": 5, "rate": 10, "eta_seconds": 5}\n',
      '[writing] img\n',
    ],
  ]
  for (const [event, line, text] of rows) {
    assert.is(renderEventLine(event), line)
    assert.is(renderEventText(event), text)
  }
})
test('on a terminal the same events are sentences for people', () => {
  const rows: readonly (readonly [FlashEvent, string])[] = [
    [{ event: 'started', total_bytes: null }, 'Preparing the disk.\n'],
    [writing(0, 'img', 'verify'), 'Reading back what was written.\n'],
    [{ event: 'provisioning', note: 'cloud-init' }, 'Adding the cloud-init data.\n'],
    [{ event: 'failed', note: 'no\u001b[31m' }, `Failed: ${String.raw`no\x1b[31m`}\n`],
  ]
  for (const [event, text] of rows) assert.is(renderEventWords(event), text)
})
test('ndjson: every event on stdout, nothing on stderr', () => {
  const { stdout, stderr } = play('ndjson', TERMINAL, COURSE)
  assert.is(stderr, '')
  const names = stdout
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line).event)
  assert.equal(
    names,
    COURSE.map(([, { event }]) => event),
  )
})
test('none: nothing anywhere', () => {
  assert.equal(play('none', TERMINAL, COURSE), { stdout: '', stderr: '' })
})
test('text in a log: event lines, and now and then how far it is', () => {
  const { stdout, stderr } = play('text', LOG, COURSE)
  assert.is(stdout, '')
  assert.equal(stderr.split('\n'), [
    '[started] total_bytes=1000',
    '[writing] img.zst',
    '[writing] 20%  0.20 of 1.00 kB  10 B/s  0:05 left',
    '[writing] 30%  0.30 of 1.00 kB  10 B/s  0:05 left',
    '[synced]',
    '[partprobed]',
    '[provisioning] cijoe',
    '[done]',
    '',
  ])
})
test('text on a terminal that can draw nothing: no line for programs', () => {
  const { stderr } = play('text', LOG, COURSE, true)
  assert.not.match(stderr, '[')
  assert.match(stderr, /^20%  0\.20 of 1\.00 kB  10 B\/s  0:05 left$/m)
})
test('text on a terminal: a bar between the event lines, gone before each', () => {
  const { stderr } = play('text', TERMINAL, COURSE)
  const drawings = stderr.split('\r').filter((part) => part.includes('write '))
  // One of the seven counts comes too soon after another.
  assert.is(drawings.length, 6)
  assert.match(
    stderr,
    /^Preparing the disk, 1\.00 kB to write\.\nWriting the image \(img\.zst\)\.\n\r write {4}2%/,
  )
  assert.ok(
    stderr.endsWith(
      '\r\u001b[KEverything is on the disk.\n' +
        'The kernel has read the new partition table.\n' +
        'Running the cijoe workflow.\nThe disk is ready.\n',
    ),
  )
})

const HALF = {
  phase: 'write',
  bytes_read: 500,
  bytes_written: 2_000_000_000,
  total_bytes: 4_000_000_000,
  rate: 412_000_000,
  eta_seconds: 4.85,
} as const
const UNSIZED = { ...HALF, total_bytes: null, eta_seconds: null } as const

test('percent, amount, rate and time left', () => {
  assert.is(renderStatus(HALF, null), '50%  2.00 of 4.00 GB  412 MB/s  0:05 left')
})
test('without a decoded size, what was read of the file tells how far it is', () => {
  assert.is(fractionOf(UNSIZED, 1000), 0.5)
  assert.is(fractionOf(UNSIZED, null), null)
  assert.is(fractionOf({ ...UNSIZED, phase: 'verify' }, 1000), null)
  assert.is(renderStatus(UNSIZED, 1000), '50%  2.00 GB  412 MB/s')
})
test('drawn in ASCII and in blocks', () => {
  const style = { columns: 80, storedBytes: null }
  assert.is(
    renderBar(HALF, { ...style, unicode: false }),
    ' write   50% [############-------------]  2.00 of 4.00 GB  412 MB/s  0:05 left',
  )
  assert.match(renderBar(HALF, { ...style, unicode: true }), / █{13}▌░{13} /)
})
test('a narrow terminal gets less, never a broken line', () => {
  assert.is(
    renderBar(HALF, { columns: 40, unicode: true, storedBytes: null }),
    ' write   50%  2.00 of 4.00 GB  412 MB/s'.slice(0, 39),
  )
})
test('always shorter than the terminal is wide', () => {
  const count = fc.nat({ max: 2 ** 42 })
  fc.assert(
    fc.property(
      fc.record({
        phase: fc.constantFrom('write' as const, 'verify' as const),
        bytes_read: count,
        bytes_written: count,
        total_bytes: fc.option(count),
        rate: fc.double({ min: 0, max: 1e11, noNaN: true }),
        eta_seconds: fc.option(fc.double({ min: 0, max: 1e9, noNaN: true })),
      }),
      fc.integer({ min: 20, max: 400 }),
      fc.boolean(),
      fc.option(count),
      (progress, columns, unicode, storedBytes) => {
        const drawn = renderBar(progress, { columns, unicode, storedBytes })
        assert.ok(displayWidth(drawn) < columns, drawn)
      },
    ),
  )
})

test.run()
