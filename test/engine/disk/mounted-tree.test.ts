/** A tree full of traps, and a host around it that must stay as it was. */
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { existsInside, isFolderInside, readInside, writeInside } from '#engine/disk/mounted-tree.ts'
import { createNvram } from '#engine/disk/nvram.ts'
import { takeTurn } from '#engine/disk/mounts.ts'
import { makeTools } from '#test/support/terminal/tool-folder.ts'

/** `root` is the tree, `outside` a folder of the host next to it. */
async function createTree() {
  const top = await mkdtemp(join(tmpdir(), 'flasher-inside-'))
  const [root, outside] = [join(top, 'root'), join(top, 'outside')]
  await mkdir(join(root, 'etc'), { recursive: true })
  await mkdir(outside)
  await writeFile(join(outside, 'file'), 'of the host')
  return {
    root,
    outside,
    [Symbol.asyncDispose]: () => rm(top, { recursive: true, force: true }),
  }
}

const write = (root: string, folder: string, name = 'user-data') =>
  writeInside(root, { folder, name, content: Buffer.from('ours'), mode: 0o600 })

async function assertUntouched(outside: string) {
  assert.equal(await readdir(outside), ['file'])
  assert.is(await readFile(join(outside, 'file'), 'utf8'), 'of the host')
}

const test = suite('inside')

test('makes folders and a file with the permissions asked for', async () => {
  await using tree = await createTree()
  await write(tree.root, 'var/lib/seed')
  const stats = await lstat(join(tree.root, 'var/lib/seed/user-data'))
  assert.is(stats.mode & 0o7777, 0o600)
  assert.is((await lstat(join(tree.root, 'var/lib'))).mode & 0o7777, 0o755)
  assert.equal(await readdir(join(tree.root, 'var/lib/seed')), ['user-data'])
})

test('follows links as the tree itself would, never out of it', async () => {
  const links = {
    absolute: (outside: string) => outside,
    climbing: () => '../../../../../../../../../../../tmp/flasher-nowhere',
    inward: () => '/srv/../srv/./deep',
    relative: () => 'etc/../elsewhere',
  }
  for (const [name, target] of Object.entries(links)) {
    await using tree = await createTree()
    await symlink(target(tree.outside), join(tree.root, 'var'))
    await write(tree.root, 'var/lib/seed')
    assert.is(await readInside(tree.root, 'var/lib/seed/user-data', 100), 'ours', name)
    await assertUntouched(tree.outside)
    const below = await readdir(tree.root, { recursive: true })
    assert.is(below.filter((path) => /^(?!var).*lib\/seed\/user-data$/.test(path)).length, 1, name)
  }
})

test('climbs from where a link leads, as the kernel does', async () => {
  await using tree = await createTree()
  await mkdir(join(tree.root, 'a/b/c'), { recursive: true })
  await symlink('/a/b/c', join(tree.root, 'link'))
  await write(tree.root, 'link/../d')
  assert.is(await readFile(join(tree.root, 'a/b/d/user-data'), 'utf8'), 'ours')
})

test('replaces a link in the place of the file, and does not write through it', async () => {
  await using tree = await createTree()
  await mkdir(join(tree.root, 'seed'))
  await symlink(join(tree.outside, 'file'), join(tree.root, 'seed/user-data'))
  await write(tree.root, 'seed')
  assert.ok((await lstat(join(tree.root, 'seed/user-data'))).isFile())
  await assertUntouched(tree.outside)
})

test('refuses FIFOs, devices, folders and files where a folder must be', async () => {
  await using tree = await createTree()
  const seed = join(tree.root, 'seed')
  await mkdir(join(seed, 'folder'), { recursive: true })
  await $`mkfifo ${seed}/fifo`
  await writeFile(join(seed, 'file'), 'x')
  const isRoot = process.getuid?.() === 0
  if (isRoot) await $`mknod ${seed}/device c 1 3`
  const cases = {
    fifo: /a FIFO/,
    folder: /a folder/,
    ...(isRoot ? { device: /a device node/ } : {}),
  }
  for (const [name, words] of Object.entries(cases)) await assertRefused(tree.root, name, words)
  await assertRefused(tree.root, 'user-data', /no folder/, 'seed/file')
  assert.equal((await readdir(seed)).toSorted(), [...Object.keys(cases), 'file'].toSorted())
})

async function assertRefused(root: string, name: string, words: RegExp, folder = 'seed') {
  try {
    await write(root, folder, name)
  } catch (error) {
    assert.match(String(error), words)
    return
  }
  assert.unreachable(name)
}

test('gives up on loops and mazes of links', async () => {
  await using tree = await createTree()
  await symlink('loop', join(tree.root, 'loop'))
  await symlink('a/'.repeat(300), join(tree.root, 'deep'))
  await mkdir(join(tree.root, 'a'))
  await symlink('..', join(tree.root, 'a/a'))
  for (const folder of ['loop', 'deep']) {
    await assertRefused(tree.root, 'x', /too many links/, folder)
  }
  await symlink('self', join(tree.root, 'etc/self'))
  assert.is(await readInside(tree.root, 'etc/self', 10), null)
})

test('reads regular files of a bounded size through links that stay inside', async () => {
  await using tree = await createTree()
  const etc = join(tree.root, 'etc')
  await writeFile(join(etc, 'fstab.real'), 'text')
  await symlink('fstab.real', join(etc, 'near'))
  await symlink('/etc/fstab.real', join(etc, 'far'))
  await symlink(join(tree.outside, 'file'), join(etc, 'out'))
  await symlink('../../outside/file', join(etc, 'up'))
  await $`mkfifo ${etc}/fifo`
  assert.is(await readInside(tree.root, 'etc/near', 4), 'text')
  assert.is(await readInside(tree.root, 'etc/far', 4), 'text')
  for (const name of ['out', 'up', 'fifo', 'missing', '.', '..']) {
    assert.is(await readInside(tree.root, `etc/${name}`, 4), null, name)
  }
  assert.is(await readInside(tree.root, 'etc/near', 3), null)
})

test('tells folders and existing names', async () => {
  await using tree = await createTree()
  await symlink(tree.outside, join(tree.root, 'etc/cloud'))
  assert.is(await isFolderInside(tree.root, 'etc/cloud'), false)
  assert.is(await existsInside(tree.root, 'etc/cloud'), true)
  assert.is(await existsInside(tree.root, 'etc/other'), false)
  await mkdir(join(tree.root, tree.outside), { recursive: true })
  assert.is(await isFolderInside(tree.root, 'etc/cloud'), true)
  assert.is(await readlink(join(tree.root, 'etc/cloud')), tree.outside)
})

test('leaves no temporary file when the write fails', async () => {
  await using tree = await createTree()
  const seed = join(tree.root, 'seed')
  await mkdir(join(seed, 'x'), { recursive: true })
  await chmod(seed, 0o700)
  await assertRefused(tree.root, 'n'.repeat(300), /ENAMETOOLONG/)
  assert.equal(await readdir(seed), ['x'])
})

test('one disk after the other; the same one, and others, at once', async () => {
  const taken: string[] = []
  const take = async (uuid: string, node: string) => {
    const end = await takeTurn(uuid, node)
    taken.push(`${uuid} ${node}`)
    return end
  }
  const first = await take('a', 'loop1')
  const again = await take('a', 'loop1')
  const waiting = [take('a', 'loop2'), take('a', 'loop3')]
  const other = await take('b', 'loop2')
  await nextTurn()
  assert.equal(taken, ['a loop1', 'a loop1', 'b loop2'])
  first()
  await nextTurn()
  assert.is(taken.length, 3)
  again()
  const second = await Promise.race(waiting)
  await nextTurn()
  assert.is(taken.length, 4)
  second()
  for (const end of await Promise.all(waiting)) end()
  assert.is(taken.length, 5)
  other()
  ;(await take('a', 'loop4'))()
})

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
  assert.equal(answer, {
    ok: true,
    value: 'the firmware boots it once, on the next boot (Boot0007)',
  })
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
  ['a firmware that forgets', { quirk: 'forgetful' }, /did not accept it as the next boot$/, 4],
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
