import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerLog, type LogLevel } from '#kit/terminal/text/log.ts'
import type { Environment } from '#kit/host/shell.ts'

const AT = '2026-03-01T10:20:30.400Z'

/** A log whose level can be turned while it runs, and what it wrote. */
function open(env: Environment, isTTY = false) {
  const written: string[] = []
  const turned: { level: LogLevel } = { level: 'debug' }
  const log = createServerLog({
    stderr: { write: (text) => written.push(text), isTTY },
    env,
    level: () => turned.level,
    now: () => new Date(AT),
  })
  return { log, written, turned }
}

function sayAll(log: ReturnType<typeof open>['log']) {
  log.debug('a detail')
  log.info('it listens')
  log.warn('a file is odd')
  log.error('it cannot write')
}

const test = suite('server log')

test('each line has its time and its rank', () => {
  const { log, written } = open({})
  sayAll(log)
  assert.equal(written, [
    `${AT} debug a detail\n`,
    `${AT} info  it listens\n`,
    `${AT} warn  a file is odd\n`,
    `${AT} error it cannot write\n`,
  ])
})

test('the journal gets ranks in its own terms, and no time', () => {
  const { log, written } = open({ JOURNAL_STREAM: '8:1234' })
  sayAll(log)
  assert.equal(written, [
    '<7>a detail\n',
    '<6>it listens\n',
    '<4>a file is odd\n',
    '<3>it cannot write\n',
  ])
})

test('a terminal shows what is wrong in colour, a file or a reader without colours does not', () => {
  const [terminal, plain] = [open({}, true), open({ NO_COLOR: '1' }, true)]
  sayAll(terminal.log)
  sayAll(plain.log)
  assert.is(terminal.written[1], `${AT} info  it listens\n`)
  assert.is(terminal.written[2], `${AT} \u001B[33mwarn \u001B[39m a file is odd\n`)
  assert.is(terminal.written[3], `${AT} \u001B[31merror\u001B[39m it cannot write\n`)
  assert.is(plain.written[3], `${AT} error it cannot write\n`)
})

const LEVELS: readonly (readonly [LogLevel, number])[] = [
  ['debug', 4],
  ['info', 3],
  ['warn', 2],
  ['error', 1],
]
for (const [level, count] of LEVELS) {
  test(`level ${level} lets ${count} of four through, from the next line on`, () => {
    const { log, written, turned } = open({})
    turned.level = level
    sayAll(log)
    assert.is(written.length, count)
  })
}

test('a line is one line, whatever it holds', () => {
  const { log, written } = open({})
  log.warn('from\na machine\u001B[2J %s {"message":"x"}')
  assert.is(written.length, 1)
  assert.is(written[0]?.split('\n').length, 2)
  assert.not.match(written[0] ?? '', '\u001B')
  assert.match(written[0] ?? '', '%s {"message":"x"}')
})

test('the same line said again and again is written each time, at once', () => {
  const { log, written } = open({})
  for (let times = 0; times < 50; times += 1) log.info('again')
  assert.is(written.length, 50)
})

test.run()
