/** Builds a root tree with mkosi: `tree.ts --profile P --arch A --epoch S --out DIR --mkosi DIR --tools DIR --cache DIR [--base DIR] [--overlay DIR]… [--apart FOLDER]`. */
import { existsSync } from 'node:fs'
import { readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { layFolder } from '#build/app/lay.ts'
import { writeList } from '#build/debian/list.ts'
import { runMkosi } from '#build/mkosi/mkosi.ts'
import { parseManifest } from '#build/debian/package-list.ts'
import { writeSandbox } from '#build/mkosi/sandbox.ts'

/** Kernel and firmware come from backports, for hardware that is newer than the release. */
const FROM_BACKPORTS = ['linux-*', 'firmware-*']
/** The architectures as mkosi spells them. */
const ARCHS: Readonly<Record<string, string>> = { x86_64: 'x86-64', arm64: 'arm64' }

const text = { type: 'string', default: '' } as const
const { profile, arch, epoch, out, mkosi, tools, cache, base, overlay, apart } = parseArgs({
  options: {
    profile: text,
    arch: text,
    epoch: text,
    out: text,
    mkosi: text,
    tools: text,
    cache: text,
    base: { type: 'string', multiple: true, default: [] },
    overlay: { type: 'string', multiple: true, default: [] },
    /** A folder of the root that becomes a tree of its own. */
    apart: text,
  },
}).values

const sandbox = await writeSandbox({
  folder: join(out, 'sandbox'),
  suite: 'trixie',
  backports: FROM_BACKPORTS,
})
const laid = join(out, 'laid')
for (const tree of overlay) await layFolder(tree, laid)
const code = await runMkosi({
  mkosi,
  cache,
  directory: process.cwd(),
  args: [
    `--profile=${profile}`,
    `--architecture=${ARCHS[arch] ?? arch}`,
    `--tools-tree=${tools}`,
    `--sandbox-tree=${sandbox}`,
    `--output-directory=${out}`,
    `--source-date-epoch=${epoch}`,
    ...base.map((tree) => `--base-tree=${tree}`),
    ...(overlay.length === 0 ? [] : [`--extra-tree=${laid}`]),
    '--force',
    'build',
  ],
})
if (code !== 0) process.exit(code)
await rm(sandbox, { recursive: true })
await rm(laid, { recursive: true, force: true })

const name = base.length === 0 ? 'base' : 'live'
const kernel = join(out, `${name}.vmlinuz`)
// A container has none.
if (existsSync(kernel)) await rename(kernel, join(out, 'vmlinuz'))
if (apart !== '') await rename(join(out, name, apart), join(out, apart))
if (base.length === 0) {
  const manifest = parseManifest(await readFile(join(out, 'base.manifest'), 'utf8'))
  await writeList(join(out, 'packages.json'), manifest)
}
