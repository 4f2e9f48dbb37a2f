import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  decideCatchUp,
  decideDoubt,
  decideTakeover,
  type LeaseWatch,
  parseTimes,
  renderTake,
  TIMES,
} from '#fleet/cluster/rules/lease.ts'

const test = suite('lease')
const LOOK_MS = 500
const leading = (beat: number, term = 'a') => ({ term, beat, holder: 'first' })

/** The readings of one who stands by: the beat at each look, and how long after the one before. */
function lookAll(
  readings: readonly (readonly [beat: number, after: number])[],
  from = 0,
): boolean[] {
  let [watch, at]: [LeaseWatch | null, number] = [null, from]
  return readings.map(([beat, after]) => {
    at += after
    const decided = decideTakeover(watch, leading(beat), at, false)
    watch = decided.watch
    return decided.take !== null
  })
}

test('the same beat for five seconds is taken over, not sooner', () => {
  const taken = lookAll(Array.from({ length: 12 }, () => [7, LOOK_MS] as const))
  assert.is(taken.indexOf(true), TIMES.leaseMs / LOOK_MS)
})

test('nobody takes over from a leader that renews, whatever the clock says', () => {
  const beats = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 1000 })), {
    maxLength: 200,
  })
  fc.assert(
    fc.property(beats, fc.integer({ min: -(10 ** 7), max: 10 ** 7 }), (looks, from) => {
      let [beat, quiet] = [0, 0]
      // The leader is never silent for longer than four seconds.
      const readings = looks.map(([isRenewed, after]) => {
        quiet += after
        if (isRenewed || quiet > TIMES.leaseMs - 1000) [beat, quiet] = [beat + 1, 0]
        return [beat, after] as const
      })
      const taken = lookAll(readings, from)
      assert.not.ok(taken.includes(true))
      assert.equal(lookAll(readings, from + 3_600_000), taken)
    }),
  )
})

const lookWithGap = (gap: number) =>
  lookAll([0, 500, gap, 500, 500, 500, 500, 500].map((after) => [7, after]))

test('of a long gap between two looks two seconds count, and it begins nothing anew', () => {
  assert.equal(lookWithGap(60_000), [false, false, false, false, false, false, false, true])
  assert.equal(lookWithGap(2000), lookWithGap(60_000))
})

test('what is said of a lease that is taken names the reason', () => {
  const silent = { term: 'a', beat: 1, lastAt: 4700, silentMs: 4700 }
  const decide = (holder: string, hasEnded: boolean, at: number) =>
    renderTake(decideTakeover(silent, { ...leading(1), holder }, at, hasEnded))
  assert.is(decide('first', false, 4900), null)
  assert.is(decide('first', false, 5200), 'the server that led has not renewed it for 5.2 s')
  assert.is(decide('first', true, 4900), 'the session of the server that led has ended')
  assert.is(decide('', false, 4900), 'no server led')
})

test('a free hint and an orderly end are taken over at once', () => {
  assert.is(decideTakeover(null, leading(1), 0, true).take, 'session-ended')
  assert.is(decideTakeover(null, { ...leading(1), holder: '' }, 0, false).take, 'handed-over')
})

interface Group {
  readonly term: string
  readonly seq: number
  readonly id: number
}

/** A model of the row, and of servers that are stopped and go on wherever they are. */
function createModel(count: number) {
  const lease = { term: 'none', beat: 0, holder: '', seq: 0 }
  const log: Group[] = []
  const members = Array.from({ length: count }, () => createIdle())
  let [at, made] = [0, 0]
  const newest = () => ({ seq: lease.seq, change: String(log.at(-1)?.id ?? '') })
  const next = () => (made += 1)

  const STEPS = {
    look(member: Idle) {
      if (member.term === lease.term) return
      const decided = decideTakeover(member.watch, lease, at, false)
      member.watch = decided.watch
      if (decided.take === null) return
      Object.assign(lease, { term: `t${next()}`, holder: 'somebody', beat: lease.beat + 1 })
      Object.assign(member, { term: lease.term, known: newest() })
    },
    renew(member: Idle) {
      if (member.term === lease.term) lease.beat += 1
    },
    send(member: Idle) {
      if (member.term === '') return
      member.sent.push({ term: member.term, seq: member.known.seq, id: next() })
    },
    /** A group may arrive late, also after its server gave it up. */
    arrive(member: Idle) {
      const group = member.sent.shift()
      if (group?.term !== lease.term || group.seq !== lease.seq) return
      Object.assign(lease, { seq: lease.seq + 1, beat: lease.beat + 1 })
      log.push({ ...group, seq: lease.seq })
      if (member.term === group.term) member.known = newest()
    },
    /** The connection: a new term first, so that what is on its way comes to nothing. */
    lose(member: Idle) {
      if (member.term === '' || member.term !== lease.term) return
      const verdict = decideDoubt({ known: member.known, sent: null, found: newest() })
      assert.is(verdict, 'not-stored')
      lease.term = member.term = `t${next()}`
    },
  }
  return {
    log,
    step({ who, does, after }: { who: number; does: keyof typeof STEPS; after: number }) {
      at += after
      const member = members[who % count]
      if (member !== undefined) STEPS[does](member)
    },
  }
}

interface Idle {
  watch: LeaseWatch | null
  term: string
  known: { readonly seq: number; readonly change: string }
  readonly sent: Group[]
}

const createIdle = (): Idle => ({
  watch: null,
  term: '',
  known: { seq: 0, change: '' },
  sent: [],
})

test('two or three servers: no group is stored under a term that is over, and no number twice', () => {
  const steps = fc.array(
    fc.record({
      who: fc.nat(2),
      does: fc.constantFrom('look', 'send', 'arrive', 'renew', 'lose'),
      after: fc.integer({ min: 0, max: 1500 }),
    }),
    { maxLength: 300 },
  )
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 3 }), steps, (count, plan) => {
      const model = createModel(count)
      for (const step of plan) model.step(step)
      const { log } = model
      assert.equal(
        log.map(({ seq }) => seq),
        log.map((_, index) => index + 1),
      )
      // Terms follow each other and never come back.
      const terms = log.map(({ term }) => term)
      const changes = terms.filter((term, index) => term !== terms[index - 1])
      assert.is(new Set(changes).size, changes.length)
    }),
    { numRuns: 300 },
  )
})

test('what became of a group whose answer was lost', () => {
  const known = { seq: 4, change: 'd' }
  const rows = [
    [{ seq: 4, change: 'd' }, 'not-stored'],
    [{ seq: 5, change: 'mine' }, 'stored'],
    [{ seq: 5, change: 'other' }, 'foreign'],
    [{ seq: 6, change: 'mine' }, 'foreign'],
    [{ seq: 4, change: 'x' }, 'foreign'],
    [{ seq: 3, change: 'c' }, 'older'],
  ] as const
  for (const [found, verdict] of rows) {
    assert.is(decideDoubt({ known, sent: 'mine', found }), verdict)
  }
})

const ENDS = { cluster: 'c', newest: { seq: 9, change: 'nine' }, oldest: 5, atSeq: 'seven' }
const at = (seq: number, change: string, cluster = 'c') => ({ cluster, seq, change })

const ROWS = [
  ['a file that follows no database', null, ENDS, 'everything'],
  ['one that another change came after', at(7, 'seven'), ENDS, 'changes'],
  ['one that has all', at(9, 'nine'), { ...ENDS, atSeq: 'nine' }, 'nothing'],
  ['one that is further behind than the log', at(2, 'two'), { ...ENDS, atSeq: null }, 'everything'],
  ['one whose restore did not end', at(-1, ''), { ...ENDS, atSeq: null }, 'everything'],
  ['one of another database', at(7, 'seven', 'd'), ENDS, 'other-database'],
  ['one that is ahead', at(12, 'twelve'), { ...ENDS, atSeq: null }, 'older-database'],
  ['one with another change of that number', at(7, 'x'), ENDS, 'older-database'],
  [
    'one whose change is missing within the log',
    at(7, 'x'),
    { ...ENDS, atSeq: null },
    'older-database',
  ],
] as const

for (const [what, membership, ends, decided] of ROWS) {
  test(`${what}: ${decided}`, () => assert.is(decideCatchUp(membership, ends), decided))
}

test('they are those of the specification, and a test may shorten them', () => {
  assert.is(parseTimes(undefined), TIMES)
  assert.equal(parseTimes('{"leaseMs":1000}'), { ...TIMES, leaseMs: 1000 })
  assert.is(TIMES.leaseMs, 5000)
  assert.is(TIMES.holdMs, 12_000)
})

for (const [text, why] of [
  ['', 'it is not a JSON object'],
  ['5', 'it is not a JSON object'],
  ['{"leaseMs":5001}', 'leaseMs must be 100 to 5000'],
  ['{"leaseMs":0}', 'leaseMs must be 100 to 5000'],
  ['{"leaseMs":"1000"}', 'leaseMs must be 100 to 5000'],
  ['{"lease":1000}', 'there is no lease'],
] as const) {
  test(`${text} is refused`, () => {
    assert.throws(() => parseTimes(text), `FLASHER_TEST_TIMES is for tests alone: ${why}`)
  })
}

test.run()
