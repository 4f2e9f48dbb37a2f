import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { FAULT_CODES } from '#kit/foundation/fault.ts'
import { COMMANDS } from '#flasher/commands/rules/commands.ts'
import {
  errorFields,
  renderEnvelope,
  EXIT,
  EXIT_CODES,
} from '#flasher/commands/rules/exit-codes.ts'

const test = suite('earlier rules')

const flagsOf = (name: string) =>
  COMMANDS.filter(({ words }) => words.join(' ') === name).flatMap(({ flags }) =>
    flags.map((flag) => flag.name),
  )

test('"Exit codes": every fault has one of the codes that help and manual explain', () => {
  const explained = EXIT_CODES.flatMap(([codes]) => codes.split(', ').map(Number))
  for (const code of FAULT_CODES) assert.ok(explained.includes(EXIT[code]), code)
  assert.is(EXIT['misuse'], 2)
  assert.is(EXIT['input-missing'], 2)
  assert.is(EXIT['plan-refused'], 1)
  assert.is(EXIT['write-failed'], 1)
  assert.is(EXIT['provision-failed'], 1)
  assert.is(EXIT['root-required'], 3)
  assert.is(EXIT['tool-missing'], 4)
  assert.is(EXIT['target-raced'], 5)
})
test('"JSON envelope": schema_version, command, then the rest, indented by two', () => {
  assert.is(
    renderEnvelope({ words: ['list', 'disks'] }, { disks: [] }, { oneLine: false }),
    '{\n  "schema_version": "1",\n  "command": "list-disks",\n  "disks": []\n}\n',
  )
  assert.is(
    renderEnvelope({ words: ['flash'] }, { ok: true }, { oneLine: true }),
    '{"schema_version": "1", "command": "flash", "ok": true}\n',
  )
})
test('errors have a code, a message, and a hint where there is one', () => {
  assert.equal(errorFields('misuse', 'no', undefined), { error: { code: 'misuse', message: 'no' } })
  assert.equal(errorFields('misuse', 'no', 'do'), {
    error: { code: 'misuse', message: 'no', hint: 'do' },
  })
})
test('"Command line": the commands, each with --json, and the flags of flash', () => {
  const names = COMMANDS.map(({ words }) => words.join(' '))
  for (const name of ['list disks', 'list images', 'inspect image', 'flash']) {
    assert.ok(names.includes(name), name)
  }
  for (const name of names) assert.ok(flagsOf(name).includes('json'), name)
  const spec =
    'image target provision user-data meta-data cijoe-workflow cijoe-config progress dry-run yes'
  for (const name of spec.split(' ')) assert.ok(flagsOf('flash').includes(name), name)
})
test.run()
