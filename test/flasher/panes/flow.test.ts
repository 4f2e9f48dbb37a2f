import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import { type FlashPlan, planFlash } from '#engine/flash/rules/flash-plan.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import {
  next,
  listRows,
  openState,
  type Checked,
  type Effect,
  type Input,
  type PaneStep,
  type PanesSetting,
  type PanesState,
} from '#flasher/panes/flow.ts'
import { renderScreen } from '#flasher/panes/program.ts'
import { createInk } from '#kit/terminal/text/terminal-style.ts'

const test = suite('flasher-tui flow')
const GB = 1e9

const SETTING: PanesSetting = {
  version: '1.2.3',
  source: 'http://lab:8080/images',
  server: 'http://lab:8080',
  mac: '52:54:00:12:34:56',
  address: '10.0.0.17',
  isRoot: true,
}

function disk(path: string, more: Partial<SurveyedDisk['device']> = {}): SurveyedDisk {
  const identity = { serial: `S-${path}`, wwn: null, sizeBytes: 500 * GB, diskseq: 1 }
  const zeros = { loop: null, writeZeroesMaxBytes: 0, discardMaxBytes: 0 }
  const device = {
    node: path,
    type: 'disk',
    sectorBytes: 512,
    readonly: false,
    vendor: 'ATA',
    model: 'Samsung SSD 980',
    tran: 'sata',
    identity,
    zeros,
    uses: [],
    ...more,
  }
  return { path, removable: false, device, parts: [] }
}

const SYSTEM = disk('/dev/sda', { uses: [{ kind: 'running-system', device: '/dev/sda1' }] })
const FREE = disk('/dev/sdb')

const image = (name: string, format: 'img' | null, sizeBytes: number | null) => ({
  name,
  location: `http://lab:8080/images/${name}`,
  format,
  sizeBytes,
})

const IMAGES = [image('notes.txt', null, 5), image('debian.img', 'img', 4 * GB)]

/** What follows from a row of inputs; keys are their names. */
function play(from: PaneStep, ...inputs: readonly (Input | string)[]) {
  const effects: Effect[] = [...from.effects]
  let { state } = from
  for (const given of inputs) {
    const input: Input =
      typeof given === 'string' ? { input: 'key', key: given, pageRows: 10 } : given
    const then = next(state, input)
    state = then.state
    effects.push(...then.effects)
  }
  return { state, effects, names: effects.map(({ effect }) => effect) }
}

const listed = (disks: readonly SurveyedDisk[] = [SYSTEM, FREE]): readonly Input[] => [
  { input: 'images', listing: { rows: IMAGES, trouble: null } },
  { input: 'disks', listing: { rows: disks, trouble: null } },
]

const open = (setting: Partial<PanesSetting> = {}, reason: string | null = null) =>
  ({ ...openState({ ...SETTING, ...setting }, { reason }), effects: [] }) satisfies PaneStep

const CHECKED: Input = { input: 'checked', checked: { findings: null, reasons: [], disk: FREE } }
const statusOf = ({ status }: PanesState) => status?.text ?? null

const FAILED: FlashOutcome = {
  kind: 'failed',
  code: 'write-failed',
  reason: 'the disk failed',
  hint: null,
  leaves: '/dev/sdb cannot boot.',
}

function planDebian(): FlashPlan {
  const virtual = { kind: 'exact', bytes: 1 } as const
  const planned = planFlash(
    { name: 'debian.img', path: null, url: null, format: 'img', sizeBytes: 1, virtual },
    { path: FREE.path, exists: true, device: FREE.device },
    { verify: 'data', sha256: null, allowPartition: false, fixGpt: false, grow: false },
  )
  if (!planned.ok) throw new Error('this disk can be flashed')
  return planned.value
}

const DONE: FlashOutcome = {
  kind: 'done',
  plan: planDebian(),
  bytesWritten: 1,
  seconds: 1,
  verified: true,
}

test('the first image that can be written is marked; a disk only once a person goes there', () => {
  const { state } = play(open(), ...listed())
  assert.equal(state.marked, { images: IMAGES[1]?.location, disks: null })
  assert.is(statusOf(play({ state, effects: [] }, 'f').state)?.startsWith('Choose a disk'), true)
  assert.is(play({ state, effects: [] }, 'tab').state.marked.disks, '/dev/sdb')
})

test('what cannot be chosen says why, for images and disks', () => {
  const { state } = play(open(), ...listed(), 'tab', 'up', 'f')
  assert.is(statusOf(state), '/dev/sda cannot be chosen: this system runs from it.')
  assert.is(state.dialog, null)
  const other = play(open(), ...listed(), 'tab', 'tab', 'up', 'f').state
  assert.is(statusOf(other), 'notes.txt cannot be chosen: flasher cannot write this format.')
  const stays = play(open(), ...listed(), 'up', 'return').state
  assert.equal([stays.focus, statusOf(stays)], ['images', statusOf(other)])
})

test('a disk is too small for the raw image that is marked, before anything is opened', () => {
  const identity = { serial: null, wwn: null, sizeBytes: GB, diskseq: null }
  const small = disk('/dev/sdc', { identity })
  const { state } = play(open(), ...listed([small]))
  assert.equal(
    listRows(state, 'disks').map(({ refusal }) => refusal),
    ['too small: the image needs 4.00 GB'],
  )
})

test('from the panes to the first byte: f, then y, and only after the checks', () => {
  const asked = play(open(), ...listed(), 'return', 'return', 'y')
  assert.is(asked.state.dialog?.kind, 'checking')
  assert.equal(asked.names, ['check'])
  const question = play({ state: asked.state, effects: [] }, CHECKED)
  assert.is(question.state.dialog?.kind, 'confirm')
  for (const key of ['n', 'escape', 'return', 'q', 'ctrl-c']) {
    const back = play({ state: question.state, effects: [] }, key)
    assert.equal([back.state.dialog, back.names], [null, []], key)
  }
  const flash = play({ state: question.state, effects: [] }, 'y')
  assert.equal([flash.state.dialog?.kind, flash.names], ['flash', ['flash']])
})

test('what was rejected cannot be flashed, whatever is pressed', () => {
  const checked: Checked = { findings: null, reasons: ['too big'], disk: FREE }
  const { state, names } = play(
    open(),
    ...listed(),
    'return',
    'f',
    { input: 'checked', checked },
    'y',
  )
  assert.equal([state.dialog?.kind, names], ['confirm', ['check']])
})

test('checks that were left say nothing any more', () => {
  const { state, names } = play(open(), ...listed(), 'return', 'f', 'escape', CHECKED)
  assert.equal([state.dialog, names], [null, ['check', 'cancel']])
})

test('a cancel is asked for twice, and q leaves no flash', () => {
  const flash = play(open(), ...listed(), 'return', 'f', CHECKED, 'y')
  const from = { state: flash.state, effects: [] }
  assert.equal(play(from, 'q').names, [])
  assert.equal(play(from, 'c', 'n').names, [])
  assert.equal(play(from, 'c', 'y').names, ['cancel'])
  assert.equal(play(from, 'ctrl-c', 'ctrl-c').names, ['cancel'])
})

test('after a success the server is notified; a refusal stays until it was', () => {
  const flash = play(open(), ...listed(), 'return', 'f', CHECKED, 'y')
  const done = play({ state: flash.state, effects: [] }, { input: 'ended', outcome: DONE })
  assert.equal(done.names, ['send-done', 'list-disks'])
  const refused = play(
    { state: done.state, effects: [] },
    { input: 'signalled', refusal: 'connection refused' },
    'return',
    'down',
  )
  assert.equal(refused.state.signal, { kind: 'failed', reason: 'connection refused' })
  const again = play({ state: refused.state, effects: [] }, 'd')
  assert.equal([again.state.signal.kind, again.names], ['sending', ['send-done']])
  const sent = play({ state: again.state, effects: [] }, { input: 'signalled', refusal: null })
  assert.is(sent.state.signal.kind, 'sent')
})

test('a failure notifies nobody, nor does a success without a server or a MAC address', () => {
  for (const setting of [{}, { mac: null }, { server: null }]) {
    const outcome = Object.keys(setting).length === 0 ? FAILED : DONE
    const all = play(open(setting), ...listed(), 'return', 'f', CHECKED, 'y', {
      input: 'ended',
      outcome,
    })
    assert.equal(all.names, ['check', 'flash', 'list-disks'])
  }
})

test('q waits for the done signal, and leaves at once when it is pressed again', () => {
  const flash = play(open(), ...listed(), 'return', 'f', CHECKED, 'y', {
    input: 'ended',
    outcome: DONE,
  })
  const leaving = play({ state: flash.state, effects: [] }, 'return', 'q')
  assert.equal(leaving.names, [])
  const from = { state: leaving.state, effects: [] }
  assert.equal(play(from, { input: 'signalled', refusal: null }).names, ['quit'])
  assert.equal(play(from, { input: 'signalled', refusal: 'HTTP 500' }).names, [])
  assert.equal(play(from, 'q').names, ['quit'])
})

test('a marked disk that is gone, or another one now, is marked no more', () => {
  const { state } = play(open(), ...listed(), 'tab')
  const from = { state, effects: [] }
  const identity = { ...FREE.device.identity, serial: 'another', diskseq: 2 }
  for (const disks of [[SYSTEM], [SYSTEM, disk('/dev/sdb', { identity })]]) {
    const after = play(from, ...listed(disks)).state
    assert.is(after.marked.disks, null)
    assert.match(statusOf(after) ?? '', /^\/dev\/sdb was removed or replaced/)
  }
  assert.is(play(from, ...listed()).state.marked.disks, '/dev/sdb')
})

test('a filter leaves what holds all of its words, and takes every letter for itself', () => {
  const { state, names } = play(open(), ...listed(), 'tab', '/', 's', 'd', 'b', ' ', 'q')
  assert.equal([listRows(state, 'disks'), names], [[], []])
  const back = play({ state, effects: [] }, 'backspace', 'backspace', 'return').state
  assert.equal([back.isTyping, back.filter.disks, back.marked.disks], [false, 'sdb', '/dev/sdb'])
  assert.is(play({ state: back, effects: [] }, 'escape').state.filter.disks, '')
})

test('without root everything is shown and nothing is written; a reason is shown at the start', () => {
  const { state, names } = play(open({ isRoot: false }), ...listed(), 'tab', 'f')
  assert.equal([names, statusOf(state)?.includes('needs root')], [[], true])
  const shown = open({}, '2 disks can be written: choose one').state
  assert.is(statusOf(shown), '2 disks can be written: choose one')
})

test('a screen is never wider or higher than the terminal, and is plain without colours', () => {
  const states = [
    play(open(), ...listed(), 'tab').state,
    play(open(), ...listed(), '?').state,
    play(open(), ...listed(), 'tab', 'f').state,
    play(open(), ...listed(), 'tab', 'f', CHECKED).state,
    play(open(), ...listed(), 'tab', 'f', CHECKED, 'y', 'c').state,
  ]
  const style = { ink: createInk({ colour: false }), unicode: false }
  for (const state of states) {
    for (const [columns, rows] of [
      [80, 25],
      [200, 50],
      [40, 12],
      [20, 10],
    ] as const) {
      const { lines } = renderScreen(state, { columns, rows }, style, 3)
      assert.ok(lines.length <= rows, `${lines.length} lines on ${rows}`)
      assert.equal(
        lines.filter((line) => line.length >= columns || /[^ -~]/.test(line)),
        [],
      )
    }
  }
})

test('the question names the disk and the image on the smallest screen, and names use free columns', () => {
  const style = { ink: createInk({ colour: false }), unicode: false }
  const asked = play(open(), ...listed(), 'tab', 'f', CHECKED).state
  const { lines } = renderScreen(asked, { columns: 30, rows: 8 }, style, 0)
  assert.match(lines.join('\n'), /all on \/dev\/sdb/)
  assert.match(lines.join('\n'), /for debian\.img/)
  const rows = [image('debian-trixie-server-2026-11-19-nightly.img.zst', 'img', GB)]
  const long: Input = { input: 'images', listing: { rows, trouble: null } }
  const wide = renderScreen(
    play(open(), ...listed(), long).state,
    { columns: 120, rows: 16 },
    style,
    0,
  )
  assert.match(
    wide.lines.join('\n'),
    /debian-trixie-server-2026-11-19-nightly\.img\.zst +img +1\.00 GB/,
  )
})

test('a flash that the server does not know of is reported with d', () => {
  const unsent = { reason: 'The disk is flashed.', unsent: 'HTTP 503' }
  const { state } = openState({ ...SETTING, server: 'http://a', mac: '52:54:00:12:34:56' }, unsent)
  assert.equal(state.signal, { kind: 'failed', reason: 'HTTP 503' })
  const pressed = next(state, { input: 'key', key: 'd', pageRows: 10 })
  assert.equal(pressed.effects, [{ effect: 'send-done' }])
})

test.run()
