import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { perArch } from '#fleet/boot/rules/boot-set.ts'
import {
  decideNetboot,
  isWhole,
  listChoices,
  listMissing,
  parseNetboot,
  renderContent,
  renderNetboot,
  standingOf,
  type LocalNetboot,
} from '#fleet/cluster/rules/shared-netboot.ts'
import { partName } from '#test/support/server/boot-folder.ts'

const test = suite('the row of the live systems')

interface Given {
  readonly version?: string | null
  readonly digest?: string
  readonly others?: readonly string[]
  readonly isChosen?: boolean
  readonly damaged?: readonly string[]
}

/** A boot directory with one set, whose kernel stands for all of it. */
function localOf({
  version = '1.0.0',
  digest = 'a',
  others = [],
  isChosen = false,
  damaged = [],
}: Given = {}): LocalNetboot {
  const files =
    version === null
      ? []
      : [{ name: partName(version, 'vmlinuz'), sizeBytes: 1, sha256: digest.repeat(64) }]
  const complete = [version ?? [], ...others]
    .flat()
    .map((each) => ({ arch: 'x86_64', version: each }) as const)
  return {
    versions: { x86_64: version, arm64: null },
    files,
    known: new Map(files.map((file) => [file.name, file])),
    complete,
    isChosen: { x86_64: isChosen, arm64: false },
    damaged,
  }
}

const rowOf = (given: Given, version = 'v1') => ({
  version,
  content: renderContent(localOf(given)),
})
const NOTHING = {
  versions: { x86_64: null, arm64: null },
  isChosen: { x86_64: false, arm64: false },
} as const
const STANDBY = { leads: false, noted: null, begun: null } as const
/** It had the row whole, and has led since it had what `begun` says. */
const leader = (begun: Given, noted: string | null = 'v1') => ({
  leads: true,
  noted,
  begun: localOf(begun),
})

test('a standby takes what the row names, whatever somebody put there, and brings nothing', () => {
  const row = rowOf({})
  const decide = (local: LocalNetboot, noted: string | null = null) =>
    decideNetboot({ ...STANDBY, noted, row, local })
  assert.is(decide(localOf({ version: null })), 'take')
  assert.is(decide(localOf({ version: '2.0.0', isChosen: true }), 'v1'), 'take')
  assert.is(decide(localOf({ digest: 'b' })), 'take', 'other bytes under the same names')
  assert.is(decide(localOf()), 'keep')
  assert.is(decideNetboot({ ...STANDBY, row: null, local: localOf() }), 'nothing')
  const own = { ...localOf(), versions: { x86_64: '1.0.0', arm64: '9.0.0' } }
  assert.is(decide(own), 'keep', 'what the row does not name stays')
})

test('who leads brings what was chosen, fetched or copied there, and takes the rest', () => {
  const decide = (local: LocalNetboot, before = leader({}), row = rowOf({})) =>
    decideNetboot({ ...before, row, local })
  assert.is(decideNetboot({ ...leader({}), row: null, local: localOf() }), 'bring')
  assert.is(
    decideNetboot({ ...leader({}), row: null, local: localOf({ version: null }) }),
    'nothing',
  )
  assert.is(decide(localOf({ version: '2.0.0', isChosen: true })), 'bring')
  assert.is(
    decide(localOf({ version: '2.0.0', others: ['1.0.0'] })),
    'bring',
    'a newer one by hand',
  )
  assert.is(decide(localOf({ digest: 'b' })), 'bring', 'built again')
  assert.is(decide(localOf({ digest: 'b', damaged: ['x'] })), 'take', 'its list says otherwise')
  assert.is(decide(localOf({ version: null })), 'take', 'it was deleted')
  const both = leader({ others: ['0.9.0'] })
  assert.is(decide(localOf({ version: '0.9.0' }), both), 'take', 'another one stands in for it')
  assert.is(
    decide(localOf({ version: '2.0.0' }), leader({ version: null })),
    'bring',
    'uploaded since',
  )
  const late = leader({ version: '0.9.0', isChosen: true }, 'v0')
  assert.is(
    decide(localOf({ version: '0.9.0', isChosen: true }), late),
    'take',
    'it just took over',
  )
  const chosen = localOf({ version: '0.8.0', isChosen: true })
  assert.is(decide(chosen, late), 'bring', 'somebody chose another one since')
})

test('a choice is copied, and made where machines would boot something else', () => {
  const choices = (row: Given, local: Given) => listChoices(localOf(row), localOf(local))
  assert.equal(
    choices({}, { version: null }),
    {},
    'a newer one that is uploaded is in its place, as there',
  )
  assert.equal(choices({ isChosen: true }, { version: null }), { x86_64: '1.0.0' })
  assert.equal(choices({}, { version: '2.0.0' }), { x86_64: '1.0.0' }, 'a newer one lies here')
  assert.equal(choices({}, { version: '0.9.0', isChosen: true }), { x86_64: '1.0.0' })
  assert.is(isWhole(localOf({ isChosen: true }), localOf()), false, 'it is to be chosen here, too')
  assert.is(isWhole(localOf(), localOf({ isChosen: true })), true)
})

test('a row that this release cannot read changes nothing', () => {
  const content = '{"versions":{"riscv64":"1.0.0"},"isChosen":{},"files":[]}'
  assert.is(parseNetboot(content), null)
  const row = { version: 'v2', content }
  assert.is(decideNetboot({ ...STANDBY, row, local: localOf() }), 'nothing')
  assert.is(decideNetboot({ ...leader({}), row, local: localOf() }), 'nothing')
  assert.match(renderNetboot(null), 'newer release')
})

const parse = (files: readonly unknown[]) => parseNetboot(JSON.stringify({ ...NOTHING, files }))

test('hostile names, sizes, digests and lengths are refused whole', () => {
  const file = { name: partName('1.0.0', 'initrd'), sizeBytes: 1, sha256: 'a'.repeat(64) }
  assert.equal(parse([file])?.files, [file])
  assert.ok(parse([{ ...file, name: 'ipxe.efi' }]))
  for (const name of ['../state.db', '.active.json', 'state.db', 'a/b', '', 'constructor'])
    assert.is(parse([{ ...file, name }]), null, name)
  for (const sizeBytes of [-1, 0.5, 2 ** 41, '1']) assert.is(parse([{ ...file, sizeBytes }]), null)
  for (const digest of ['', 'A'.repeat(64), 'a'.repeat(63)])
    assert.is(parse([{ ...file, sha256: digest }]), null)
  assert.is(parse(Array.from({ length: 65 }, () => file)), null)
  assert.is(parseNetboot(' '.repeat(70_000)), null)
})

test('what is missing is known by its digest, and what a server has in words', () => {
  const row = localOf()
  assert.equal(listMissing(row, localOf({ digest: 'b' })), row.files)
  assert.is(isWhole(row, localOf()), true)
  assert.is(
    isWhole(row, { ...localOf(), versions: perArch(() => null) }),
    false,
    'it is not active',
  )
  const stored = rowOf({})
  assert.is(standingOf({ version: 'v1', trouble: '' }, stored), 'whole')
  assert.is(standingOf({ version: 'v0', trouble: '' }, stored), 'copying')
  assert.is(standingOf({ version: '', trouble: 'x' }, stored), 'troubled')
  assert.is(renderNetboot(row), '1.0.0 (x86_64); 1 files, 1 B')
})

test.run()
