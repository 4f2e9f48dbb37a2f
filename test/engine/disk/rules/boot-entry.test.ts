import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import {
  findSystemPartition,
  isBootWanted,
  loaderFor,
  parseBootEntries,
} from '#engine/disk/rules/boot-entry.ts'

const test = suite('boot entries')

test('reads what old and new versions of efibootmgr print', () => {
  const old = [
    'BootNext: 0002',
    'BootCurrent: 0001',
    'Timeout: 3 seconds',
    'BootOrder: 0001,0000',
    'Boot0000* UiApp',
    'Boot0001* debian',
    'Boot0002* flasher flashed',
    'Boot000A  flasher flashed',
    'Boot000B* flasher flashed by hand',
  ].join('\n')
  assert.equal(parseBootEntries(old), {
    ours: ['0002', '000A'],
    next: '0002',
    order: '0001,0000',
  })
  const path =
    'HD(1,GPT,12345678-0000-0000-0000-000000000000,0x800,0x8000)/\\EFI\\BOOT\\BOOTX64.EFI'
  const recent = `BootOrder: \nBoot0003* flasher flashed\t${path}\nBoot0004* other\tflasher flashed\n`
  assert.equal(parseBootEntries(recent), { ours: ['0003'], next: null, order: '' })
  assert.equal(parseBootEntries('EFI variables are not supported'), {
    ours: [],
    next: null,
    order: null,
  })
})

test('knows the loaders of both architectures', () => {
  assert.is(loaderFor('x64'), '\\EFI\\BOOT\\BOOTX64.EFI')
  assert.is(loaderFor('arm64'), '\\EFI\\BOOT\\BOOTAA64.EFI')
  assert.is(loaderFor('riscv64'), null)
  assert.is(loaderFor('constructor'), null)
})

test('the variable: 1, true, yes and on ask for it, everything else does not', () => {
  for (const yes of ['1', 'true', 'yes', 'on']) assert.ok(isBootWanted(yes), yes)
  for (const no of [undefined, '', '0', 'false', 'no', 'off', '2', 'y', 'yes please']) {
    assert.not(isBootWanted(no), String(no))
  }
})

async function partition(script: string): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-table-'))
  try {
    const disk = join(folder, 'disk')
    await writeFile(disk, '')
    await truncate(disk, 64 * 2 ** 20)
    if (script !== '') await $({ quiet: true, input: script })`sfdisk --quiet ${disk}`
    return (await readFile(disk)).subarray(0, 2 ** 20)
  } finally {
    await rm(folder, { recursive: true })
  }
}

const TABLES: readonly (readonly [string, string, unknown])[] = [
  ['a GPT', 'label: gpt\nsize=8M\nsize=8M,type=uefi\nsize=8M,type=uefi\n', 2],
  ['a GPT with a gap', 'label: gpt\n3: size=8M,type=uefi\n', 3],
  ['an MBR', 'label: dos\nsize=8M,type=83\nsize=8M,type=ef\n', 2],
  ['a GPT without one', 'label: gpt\nsize=8M\n', 'no-system-partition'],
  ['an MBR without one', 'label: dos\nsize=8M,type=83\n', 'no-system-partition'],
  ['no table', '', 'no-table'],
]
for (const [what, script, expected] of TABLES) {
  test(`finds the system partition of ${what}`, async () => {
    const found = findSystemPartition(await partition(script), 512)
    assert.is(found.ok ? found.value : found.refusal, expected)
  })
}

test('a table made for another sector size holds nothing for the firmware', async () => {
  const head = await partition('label: gpt\nsize=8M,type=uefi\n')
  assert.is(findSystemPartition(head, 4096).ok, false)
})

test.run()
