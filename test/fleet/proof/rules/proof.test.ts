import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createRun } from '#engine/inventory/rules/run.ts'
import {
  areOwnCards,
  createProof,
  decideAnswer,
  decideCall,
  isOldSystem,
  isOpen,
  joinKeys,
  listOthers,
  nextProof,
  parseNeighbours,
  type Sign,
} from '#fleet/proof/rules/proof.ts'
import { MAC, macOf } from '#test/support/server/machine-fixture.ts'
import { originOf } from '#test/support/server/runs.ts'

const test = suite('what is seen of a system that was flashed')

const START = Date.parse('2026-11-26T08:00:00.000Z')
const at = (seconds: number) => new Date(START + seconds * 1000).toISOString()
const ISSUED = at(-60)

type Step = readonly [
  seconds: number,
  sign: Sign | 'contact' | 'limit' | 'call' | 'answers' | 'silent',
]

const SIGNS = {
  contact: { kind: 'contact' },
  limit: { kind: 'limit' },
  call: { kind: 'call', issued: ISSUED },
  answers: { kind: 'network', answers: true },
  silent: { kind: 'network', answers: false },
} as const satisfies Record<string, Sign>

const after = (...steps: readonly Step[]) =>
  steps.reduce(
    (proof, [seconds, sign]) =>
      nextProof(proof, typeof sign === 'string' ? SIGNS[sign] : sign, at(seconds)),
    createProof(at(0), 1800, ISSUED),
  )
const word = (...steps: readonly Step[]) => after(...steps).state

test('the system that calls has booted, whatever was seen before', () => {
  const { state, how, seconds } = after([20, 'contact'], [95, 'call'])
  assert.equal([state, how, seconds], ['booted', 'call', 95])
  assert.is(word([20, 'contact'], [80, 'contact'], [140, 'contact'], [400, 'call']), 'booted')
})

test('three boots from the network, or two and then nothing, are a failure', () => {
  assert.is(word([20, 'contact'], [80, 'contact']), 'watching')
  assert.is(word([20, 'contact'], [80, 'contact'], [140, 'contact']), 'failed')
  assert.is(word([20, 'contact'], [80, 'contact'], [1800, 'limit']), 'failed')
  assert.match(after([20, 'contact'], [80, 'contact'], [140, 'contact']).reason ?? '', '3 times')
})

test('what nobody sees is not called a failure', () => {
  assert.is(word([1800, 'limit']), 'not-seen')
  assert.is(word([20, 'contact'], [1800, 'limit']), 'not-seen')
})

test('a network card that answers after a silence is a sign, and no proof', () => {
  const seen = after([20, 'contact'], [30, 'silent'], [60, 'answers'], [1800, 'limit'])
  assert.equal([seen.state, seen.how, seen.seconds], ['seen', 'network', 60])
  assert.is(word([20, 'silent'], [60, 'answers']), 'watching')
  assert.is(word([20, 'silent'], [60, 'answers'], [90, 'call']), 'booted')
})

test('no proof where nothing booted', () => {
  const other: Sign = { kind: 'call', issued: at(-61) }
  const rows: readonly (readonly [string, string, ...Step[]])[] = [
    ['the live system still answers', 'not-seen', [1, 'answers'], [1800, 'limit']],
    [
      'firmware answers while it boots',
      'not-seen',
      [20, 'contact'],
      [21, 'answers'],
      [1800, 'limit'],
    ],
    [
      'an answer before firmware came again',
      'not-seen',
      [5, 'silent'],
      [9, 'answers'],
      [20, 'contact'],
      [1800, 'limit'],
    ],
    ['a card that never answers', 'not-seen', [5, 'silent'], [1800, 'limit']],
    ['the address of another flash', 'not-seen', [50, other], [1800, 'limit']],
    ['a call after the limit', 'not-seen', [1800, 'limit'], [1801, 'call']],
    ['a call after the next flash', 'not-seen', [50, { kind: 'flash' }], [60, 'call']],
    [
      'a boot loader that asks three times in one boot',
      'not-seen',
      [20, 'contact'],
      [21, 'contact'],
      [22, 'contact'],
      [1800, 'limit'],
    ],
    ['a boot loop', 'failed', [20, 'contact'], [40, 'contact'], [60, 'contact'], [1800, 'limit']],
    [
      'a call after a boot loop and the limit',
      'failed',
      [20, 'contact'],
      [40, 'contact'],
      [60, 'contact'],
      [1800, 'call'],
    ],
  ]
  for (const [name, expected, ...steps] of rows) assert.is(word(...steps), expected, name)
})

test('a run without an address of its own is not proved by any', () => {
  const none = createProof(at(0), 1800, null)
  assert.is(nextProof(none, SIGNS.call, at(9)), none)
})

test('what changes nothing is the same object: a repeat, and all that comes after the end', () => {
  const booted = after([95, 'call'])
  for (const sign of Object.values(SIGNS)) assert.is(nextProof(booted, sign, at(99)), booted)
  const waiting = after([20, 'contact'])
  assert.is(nextProof(waiting, SIGNS.contact, at(22)), waiting)
})

test('a wait is open until it is proved or over, and after a boot loop until its limit', () => {
  assert.ok(isOpen(after([20, 'contact']), at(5000)))
  assert.not(isOpen(after([95, 'call']), at(96)))
  const failed = after([20, 'contact'], [80, 'contact'], [140, 'contact'])
  assert.equal([isOpen(failed, at(200)), isOpen(failed, at(1801))], [true, false])
})

test('an address that was made for the run before is not of this one', () => {
  const former = { ...createRun('run-00000001', originOf(MAC), at(-500)), ended_at: at(-400) }
  assert.is(decideCall(at(-450), former), null)
  assert.is(decideCall(at(-60), former), at(-60))
  assert.is(decideCall(at(-60), null), at(-60))
  assert.is(decideCall(null, former), null)
})

test('only a system on the disk that had time to start is a witness of what was there before', () => {
  assert.ok(isOldSystem({ isToDisk: true, at: 0 }, 120_000))
  assert.not(isOldSystem({ isToDisk: true, at: 0 }, 119_999))
  assert.not(isOldSystem({ isToDisk: false, at: 0 }, 999_999))
  assert.not(isOldSystem(undefined, 999_999))
})

const howBy = (before: readonly string[] | null, ...keys: readonly string[]) => {
  const waiting = nextProof(createProof(at(0), 1800, null, before), SIGNS.silent, at(1))
  return nextProof(waiting, { kind: 'ssh', keys }, at(60)).how
}

test('a host key proves it where both systems before had others, and both are known', () => {
  assert.equal([joinKeys(null, []), joinKeys([], null)], [null, null])
  assert.equal(joinKeys(['old'], ['live', 'old']), ['old', 'live'])
  assert.is(howBy(['old', 'live'], 'new'), 'ssh')
  assert.is(howBy([], 'new'), 'ssh')
  assert.is(howBy(['old', 'live'], 'new', 'live'), null)
  assert.is(howBy(null, 'new'), null)
  assert.is(howBy([]), null)
})

const OTHER = macOf('52:54:00:00:00:99')
const BMC = '52:54:00:00:00:77'
const TABLE = `IP address       HW type     Flags       HW address            Mask     Device
192.0.2.10       0x1         0x2         ${MAC}     *        eth0
192.0.2.11       0x1         0x0         00:00:00:00:00:00     *        eth0
192.0.2.12       0x1         0x2         ${BMC}     *        eth0
192.0.2.13       0x1         0x2         ${OTHER}     *        eth0
`
const machine = (mac: typeof MAC, last_seen_ip: string, last_seen_at: string) => ({
  mac,
  last_seen_ip,
  last_seen_at,
})
const found = parseNeighbours(TABLE)

test('the table of the kernel tells who answers', () => {
  assert.equal([...found.values()], [MAC, null, BMC, OTHER])
  assert.is(parseNeighbours('').size, 0)
  const answers = (ip: string | null) => decideAnswer({ mac: MAC, last_seen_ip: ip }, found)
  assert.is(answers('192.0.2.10'), true)
  assert.is(answers('192.0.2.11'), false)
  // A BMC that shares the port, and a system with another card.
  assert.is(answers('192.0.2.12'), false)
  assert.is(answers('198.51.100.1'), null)
  assert.is(answers(null), null)
})

test('a call of a machine that is known to be another is recognised by its card, or by its address', () => {
  const since = '2026-11-26T08:00:00.000Z'
  const self = machine(MAC, '192.0.2.10', since)
  const other = machine(OTHER, '198.51.100.7', '2026-11-26T08:05:00.000Z')
  const isOther = (ip: string | null, machines = [self, other]) =>
    listOthers({ mac: MAC, ip, since }, found, machines).length > 0
  assert.is(isOther('192.0.2.13'), true)
  assert.is(isOther('198.51.100.7'), true)
  assert.is(isOther('192.0.2.10'), false)
  assert.is(isOther('198.51.100.8'), false)
  assert.is(isOther(null), false)
  // A lease that the other one had before the flash is free for this one.
  const before = machine(OTHER, '198.51.100.7', '2026-11-26T07:00:00.000Z')
  assert.is(isOther('198.51.100.7', [self, before]), false)
  // They all have its address behind one router.
  const routed = machine(MAC, '198.51.100.7', since)
  assert.is(isOther('198.51.100.7', [routed, other]), false)
})

test('a second card of the same machine is no other machine', () => {
  const hardware = JSON.stringify({ children: [{ serial: MAC }, { serial: OTHER.toUpperCase() }] })
  assert.ok(areOwnCards([OTHER], hardware))
  assert.not(areOwnCards([OTHER, BMC], hardware))
  assert.not(areOwnCards([OTHER], null))
})

test.run()
