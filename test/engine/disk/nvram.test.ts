/** The order of what is asked of the firmware; a real one is asked in test/vm/uefi-boot-next.test.ts. */
import { mkdir, truncate, writeFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createNvram } from '#engine/disk/nvram.ts'
import { makeTools } from '#test/support/terminal/tool-folder.ts'

const test = suite('nvram')

/** A firmware that keeps its entries as files: the changes that are asked for are written down. */
const FIRMWARE = `
show() {
  [ -f $HERE/next ] && echo "BootNext: $(cat $HERE/next)"
  echo "BootOrder: $(cat $HERE/order)"
  cat $HERE/entries
}
[ $# = 0 ] && { show; exit 0; }
echo "$*" >>$HERE/asked
case "$*" in
  *--delete-bootnum) sed -i "/^Boot$3/d" $HERE/entries ;;
  *--create-only*) [ -f $HERE/full ] && { echo 'Could not prepare Boot variable: No space left on device' >&2; exit 5; }
    echo "Boot0007* flasher flashed" >>$HERE/entries ;;
  *--bootnext*) [ -f $HERE/forgetful ] || echo $3 >$HERE/next ;;
esac`

const ENTRIES =
  'Boot0000* UiApp\nBoot0001* debian\nBoot0003* flasher flashed\nBoot0004* flasher flashed\n'

interface MachineOptions {
  readonly table?: string
  readonly quirk?: 'full' | 'forgetful'
  readonly isUefi?: boolean
  readonly arch?: string
}

async function askFirmware({
  table = 'label: gpt\nsize=8M\nsize=8M,type=uefi\n',
  quirk,
  isUefi = true,
  arch = 'arm64',
}: MachineOptions = {}) {
  await using tools = await makeTools({ efibootmgr: FIRMWARE })
  await writeFile(tools.at('entries'), ENTRIES)
  await writeFile(tools.at('order'), '0001,0000')
  await writeFile(tools.at('disk'), '')
  await truncate(tools.at('disk'), 64 * 2 ** 20)
  if (table !== '') await $({ quiet: true, input: table })`sfdisk --quiet ${tools.at('disk')}`
  if (isUefi) await mkdir(tools.at('sys/firmware/efi/efivars'), { recursive: true })
  if (quirk !== undefined) await writeFile(tools.at(quirk), '')
  const nvram = createNvram({ shell: tools.shell, arch, sys: tools.at('sys') })
  const answer = await nvram.bootOnce({ node: tools.at('disk'), sectorBytes: 512 })
  const asked = (await tools.text('asked')).replaceAll(tools.folder, '').trim().split('\n')
  return { answer, asked }
}

test('earlier entries of ours go, a new one comes, and only BootNext is set', async () => {
  const { answer, asked } = await askFirmware()
  assert.equal(answer, { ok: true, value: 'the firmware boots it once, next (Boot0007)' })
  assert.equal(asked, [
    '--quiet --bootnum 0003 --delete-bootnum',
    '--quiet --bootnum 0004 --delete-bootnum',
    '--quiet --create-only --disk /disk --part 2 --loader \\EFI\\BOOT\\BOOTAA64.EFI --label flasher flashed',
    '--quiet --bootnext 0007',
  ])
})

const NOES: readonly (readonly [string, MachineOptions, RegExp, number])[] = [
  ['no UEFI', { isUefi: false }, /^this machine was not started by UEFI$/, 0],
  ['another processor', { arch: 'riscv64' }, /^no UEFI loader is known for riscv64$/, 0],
  ['no table', { table: '' }, /has no partition table$/, 0],
  ['no system partition', { table: 'label: gpt\nsize=8M\n' }, /has no EFI system partition$/, 0],
  ['a full memory', { quirk: 'full' }, /^efibootmgr: Could not prepare .*No space left/, 3],
  ['a firmware that forgets', { quirk: 'forgetful' }, /did not take it as its next boot$/, 4],
]
for (const [what, machine, reason, changes] of NOES) {
  test(`${what}: a reason, and no throw`, async () => {
    const { answer, asked } = await askFirmware(machine)
    assert.match(answer.ok ? '' : answer.refusal, reason)
    assert.is(asked.filter(Boolean).length, changes)
  })
}

test('a disk that is gone is a reason, too', async () => {
  await using tools = await makeTools({ efibootmgr: FIRMWARE })
  await mkdir(tools.at('sys/firmware/efi/efivars'), { recursive: true })
  const nvram = createNvram({ shell: tools.shell, arch: 'x64', sys: tools.at('sys') })
  const answer = await nvram.bootOnce({ node: '/nowhere', sectorBytes: 512 })
  assert.match(answer.ok ? '' : answer.refusal, /\/nowhere.* does not exist/)
})

test.run()
