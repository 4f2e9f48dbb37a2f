import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  startProgress,
  updateProgress,
  describeActivity,
  resetProgress,
  type Snapshot,
  type Run,
} from '#build/demo/machine-progress.ts'

const RUN: Run = {
  id: 'run-00000001',
  phase: 'write',
  state: 'running',
  bytesWritten: 0,
  totalBytes: 64,
  rate: null,
  averageRate: null,
  isVerified: null,
  reason: null,
  proof: null,
}
const DONE: Run = { ...RUN, phase: 'done', state: 'done', isVerified: true }
const DISKS = [{ serial: 'DEMO1', size: '16G' }]
const KNOWN = { disks: DISKS, isArmed: false, image: null }
const ARMED = { disks: DISKS, isArmed: true, image: 'hello.img' }
const LIVE = 'flasher: 52:54 starts the live system (disks-wanted)\n'
const DISK = 'flasher: 52:54 boots its own disk (flashed)\n'
const GREETS = `${DISK}This disk was written by flasher.\n`

const EMPTY: Snapshot = { machine: null, run: null, serial: '' }
const names = (snapshots: readonly Partial<Snapshot>[], begin = EMPTY) => {
  let progress = startProgress(begin)
  return snapshots.map((snapshot) => {
    const update = updateProgress(progress, { ...EMPTY, ...snapshot })
    progress = update.progress
    return update.events.map(({ event }) => event).join(' ')
  })
}

const prove = (state: string) => ({
  run: { ...DONE, proof: { state, seconds: 3, reason: null } },
})

const armAt = (serial: string) => {
  const before = updateProgress(startProgress(EMPTY), { ...EMPTY, machine: KNOWN, serial })
  return updateProgress(before.progress, { ...EMPTY, machine: ARMED, serial }).events
}

const test = suite('the progress of a demo')

test('from the first contact to the booted disk, each thing once', () => {
  const after = { machine: KNOWN, run: DONE }
  assert.equal(
    names([
      {},
      { machine: { ...KNOWN, disks: null }, serial: LIVE },
      { machine: { ...KNOWN, disks: null }, serial: LIVE },
      { machine: KNOWN, serial: LIVE },
      { machine: KNOWN, serial: LIVE + DISK },
      { machine: ARMED, serial: LIVE + DISK },
      { machine: ARMED, serial: LIVE + DISK + LIVE },
      { machine: ARMED, run: RUN, serial: LIVE + DISK + LIVE },
      { machine: ARMED, run: { ...RUN, phase: 'verify' }, serial: LIVE + DISK + LIVE },
      { ...after, serial: LIVE + DISK + LIVE },
      { ...after, serial: LIVE + DISK + LIVE + DISK },
      { ...after, serial: LIVE + DISK + LIVE + GREETS },
      { ...after, serial: LIVE + DISK + LIVE + GREETS },
    ]),
    [
      '',
      'discovered',
      '',
      'disks waiting',
      'to-disk',
      'armed',
      '',
      'flashing',
      '',
      'flashed',
    ].concat(['to-disk', 'booted', '']),
  )
})

test('a machine that went to its disk is restarted when it is armed, one in the live system is not', () => {
  assert.equal(armAt(LIVE), [{ event: 'armed', image: 'hello.img', needsRestart: false }])
  assert.equal(armAt(LIVE + DISK), [{ event: 'armed', image: 'hello.img', needsRestart: true }])
})

test('after a restart what was said before does not count', () => {
  const seen = updateProgress(startProgress(EMPTY), { ...EMPTY, machine: KNOWN, serial: GREETS })
  assert.is(seen.progress.hasGreeted, true)
  const progress = resetProgress(seen.progress, GREETS)
  const again = updateProgress(progress, { ...EMPTY, machine: ARMED, serial: GREETS + LIVE })
  assert.equal([again.progress.isOnDisk, again.progress.hasGreeted], [false, false])
  const booted = updateProgress(again.progress, {
    ...EMPTY,
    machine: ARMED,
    serial: GREETS + LIVE + GREETS,
  })
  assert.equal(
    booted.events.map(({ event }) => event),
    ['to-disk', 'booted'],
  )
})

test('what an earlier demo has left is no news', () => {
  const earlier = { ...EMPTY, machine: KNOWN, run: DONE }
  assert.equal(names([earlier, earlier], earlier), ['waiting', ''])
})

test('a flash that fails between two snapshots is reported with its reason', () => {
  const failed = { ...RUN, state: 'failed', reason: 'The disk is too small.' }
  const { events } = updateProgress(startProgress(EMPTY), { ...EMPTY, machine: KNOWN, run: failed })
  assert.equal(events.slice(-3), [
    { event: 'flashing' },
    { event: 'failed', reason: 'The disk is too small.' },
    { event: 'waiting', again: true },
  ])
})

test('a boot that is proved, or is not, is news once the wait for it has ended', () => {
  const [waits, proved, not] = [prove('watching'), prove('booted'), prove('not-seen')]
  assert.equal(names([waits, proved, proved]), ['flashing flashed', 'proved', ''])
  assert.equal(names([waits, not]), ['flashing flashed', 'unproved'])
  assert.equal(names([proved], { ...EMPTY, ...proved }), [''])
})

test('a run that stalls is not armed again when it goes on', () => {
  const stalled = { ...RUN, state: 'stalled' }
  assert.equal(
    names([
      { machine: ARMED },
      { machine: ARMED, run: RUN },
      { machine: KNOWN, run: stalled },
      { machine: ARMED, run: RUN },
    ]),
    ['discovered disks armed', 'flashing', '', ''],
  )
})

test('what goes on is what the serial line said last', () => {
  assert.is(describeActivity(''), 'Switching on')
  assert.is(describeActivity(`SeaBIOS\n${LIVE}`), 'Loading kernel and initrd')
  assert.is(describeActivity(`${LIVE}flasher: digest verified\n`), 'Starting the live system')
  assert.is(describeActivity(`${LIVE}${DISK}SeaBIOS\n`), describeActivity('SeaBIOS'))
})

test.run()
