import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { COMMANDS, progressModeOf } from '#flasher/commands/rules/commands.ts'
import {
  errorFields,
  EXIT,
  EXIT_CODES,
  renderEnvelope,
} from '#flasher/commands/rules/exit-codes.ts'
import { parseFlashRequest } from '#flasher/commands/rules/requests.ts'
import { FAULT_CODES } from '#kit/foundation/fault.ts'

const test = suite('parseFlashRequest')

const ask = (
  switches: string,
  values: Readonly<Record<string, string>> = {},
  targets: readonly string[] = ['/dev/sdb'],
): ReturnType<typeof parseFlashRequest> =>
  parseFlashRequest({
    values: { image: 'a.img', ...values },
    lists: { target: targets },
    switches: new Set(switches.split(' ').filter(Boolean)),
  })
const misuse = (...given: Parameters<typeof ask>) => {
  const found = ask(...given)
  return found.ok ? 'fine' : found.refusal.message
}

test('what is asked for, with what holds when nothing is said', () => {
  assert.equal(ask('yes'), {
    ok: true,
    value: {
      image: 'a.img',
      mirrors: [],
      targets: [{ path: '/dev/sdb' }],
      format: null,
      dryRun: false,
      options: {
        verify: 'data',
        sha256: null,
        allowPartition: false,
        fixGpt: false,
        indexSha256: null,
        delta: false,
        grow: false,
      },
      provisioning: { mode: 'none' },
    },
  })
})
test('several targets keep their order, and are not provisioned', () => {
  const targets = ['/dev/sdc', '/dev/sdb']
  const found = ask('yes', {}, targets)
  assert.equal(
    found.ok && found.value.targets,
    targets.map((path) => ({ path })),
  )
  const provisioned = misuse('yes', { provision: 'cloud-init', 'user-data': 'u' }, targets)
  assert.is(provisioned, '--provision needs exactly one --target')
})
test('"flash flags": neither is refused naming both, --dry-run wins', () => {
  const found = ask('')
  assert.ok(!found.ok)
  assert.match(found.refusal.message, /--dry-run.*--yes/)
  assert.match(found.refusal.hint ?? '', /--dry-run.*--yes/)
  const both = ask('dry-run yes')
  assert.ok(both.ok && both.value.dryRun)
})
test('"Provisioning": what a mode requires; what it does not use is ignored', () => {
  assert.is(
    misuse('yes', { provision: 'cloud-init' }),
    '--provision cloud-init needs --user-data PATH',
  )
  assert.is(misuse('yes', { provision: 'cijoe' }), '--provision cijoe needs --cijoe-workflow PATH')
  const seed = ask('yes', { provision: 'cloud-init', 'user-data': 'u', 'cijoe-config': 'c' })
  assert.ok(seed.ok)
  assert.equal(seed.value.provisioning, { mode: 'cloud-init', userData: 'u', metaData: null })
  const flow = ask('yes', { provision: 'cijoe', 'cijoe-workflow': 'w', 'cijoe-config': 'c' })
  assert.ok(flow.ok)
  assert.equal(flow.value.provisioning, { mode: 'cijoe', workflow: 'w', config: 'c' })
  const none = ask('yes', { provision: 'none', 'user-data': 'u' })
  assert.ok(none.ok)
  assert.equal(none.value.provisioning, { mode: 'none' })
})
test('consent comes before the flags that others need', () => {
  assert.match(misuse('', { provision: 'cijoe' }), /--dry-run or --yes/)
})
test('what cannot be meant', () => {
  assert.is(
    misuse('yes', { image: '-' }),
    '--image - needs --format: standard input has no file name',
  )
  assert.is(misuse('yes', { image: '-', format: 'img' }), 'fine')
  assert.match(misuse('yes', { image: 'ftp://host/a.img' }), /ftp:\/\/ images are not supported/)
  assert.is(
    misuse('yes no-verify verify-all'),
    '--no-verify and --verify-all cannot be used together',
  )
})
test('options', () => {
  const digests = { sha256: 'AB'.repeat(32), 'index-sha256': 'CD'.repeat(32) }
  const found = ask('yes verify-all allow-partition fix-gpt grow delta', digests)
  assert.ok(found.ok)
  assert.equal(found.value.options, {
    verify: 'all',
    sha256: 'ab'.repeat(32),
    allowPartition: true,
    fixGpt: true,
    indexSha256: 'cd'.repeat(32),
    delta: true,
    grow: true,
  })
  const off = ask('yes no-verify', { format: 'img.xz' })
  assert.ok(off.ok)
  assert.is(off.value.options.verify, 'none')
  assert.is(off.value.format, 'img.xz')
})
const mode = (values: Readonly<Record<string, string>>) => progressModeOf({ values })

test('progress is text unless something else is asked for', () => {
  assert.equal(
    [mode({}), mode({ progress: 'ndjson' }), mode({ progress: 'none' })],
    ['text', 'ndjson', 'none'],
  )
})

const flagsOf = (name: string) =>
  COMMANDS.filter(({ words }) => words.join(' ') === name).flatMap(({ flags }) =>
    flags.map((flag) => flag.name),
  )

test('"Exit codes": every fault has one of the codes that the manual explains', () => {
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
