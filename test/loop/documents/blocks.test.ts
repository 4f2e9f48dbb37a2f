/** The blocks of README.md, cli.md and capture.md that write to disks, run by a shell on loop devices. */
import { execFile } from 'node:child_process'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeContent } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { blocksRunBy } from '#test/support/documents/document-lab.ts'
import { serveFolder } from '#test/support/http/folder-server.ts'
import { startRegistry } from '#test/support/http/registry.ts'
import { opened } from '#test/support/opened.ts'
import { FLASHER } from '#test/support/terminal/flasher.ts'

const test = suite('blocks that write to disks')
const SELF = 'test/loop/documents/blocks.test.ts'
const execute = promisify(execFile)
const MIB = 2 ** 20

const content = makeContent(8 * MIB)
const scratch = opened(test, () => mkdtempDisposable(join(tmpdir(), 'flasher-blocks-')))
const at = (name: string) => join(scratch().path, name)

test.before(async () => {
  await writeFile(at('raw'), content)
  await execute('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', at('raw'), at('debian.qcow2')])
  const options = { encoding: 'buffer', maxBuffer: 64 * MIB } as const
  const { stdout } = await execute('xz', ['-k', '-T1', '-c', at('raw')], options)
  await writeFile(at('debian.img.xz'), stdout)
})

/** The programs of the pages are those of this checkout. */
const PRELUDE = `
set -e
flasher() { '${process.execPath}' '${FLASHER}' "$@"; }
npx() { shift; "$@"; }
`

/** Runs a block with its names replaced; what it printed. */
async function run(text: string, names: Readonly<Record<string, string>>): Promise<string> {
  const here = Object.entries(names).reduce((rest, [name, by]) => rest.replaceAll(name, by), text)
  for (const name of Object.keys(names)) assert.match(text, name)
  const { stdout } = await execute('bash', ['-c', `${PRELUDE}${here}`], { cwd: scratch().path })
  return stdout
}

const first = async (file: string) => (await readFile(file)).subarray(0, content.length)

test('cli.md: an image is packed, pushed, and written', async () => {
  const [pack = '', push = '', , flash = ''] = blocksRunBy(SELF, 'cli.md')
  await run(pack, {})
  await using registry = await startRegistry()
  await run(push, { 'registry.example': registry.host })
  const tags = await fetch(`http://${registry.host}/v2/lab/debian/tags/list`)
  assert.match(await tags.text(), '"13"')
  await using target = await createLoop({ megabytes: 16 })
  await run(flash, { '/dev/sdb': target.device })
  assert.ok((await first(target.backing)).equals(content))
})

test('cli.md and capture.md: a disk is captured and written to a larger one', async () => {
  await using source = await createLoop({ megabytes: 64 })
  await using target = await createLoop({ megabytes: 96 })
  const table = 'label: gpt\ntype=L\n'
  const format = `printf '${table}' | sfdisk --quiet --no-reread ${source.device}
partx --add ${source.device}
mkfs.ext4 -q ${source.device}p1`
  await execute('bash', ['-ec', format])
  const [, , capture = ''] = blocksRunBy(SELF, 'cli.md')
  await run(capture, { '/dev/sdb': source.device, 'web.img.zst': 'other.img.zst' })
  const [whole = ''] = blocksRunBy(SELF, 'capture.md')
  await run(whole, { '/dev/sdb': source.device, '/dev/sdc': target.device })
  const { stdout } = await execute('sfdisk', ['--json', target.backing])
  assert.match(stdout, /"size": ?1\d{5}/)
})

test('README.md: disks are listed, and an image is written from an address', async () => {
  using site = await serveFolder(scratch().path)
  await using target = await createLoop({ megabytes: 16 })
  const [block = ''] = blocksRunBy(SELF, '../README.md')
  await run(block, { '/dev/sdb': target.device, 'https://example.org': site.url })
  assert.ok((await first(target.backing)).equals(content))
})

test.run()
