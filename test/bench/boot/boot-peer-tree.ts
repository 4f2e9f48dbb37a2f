/** Has mkosi make the initrd of the peer: `boot-peer-tree.ts --base DIR --out DIR --mkosi DIR --tools DIR --cache DIR --script FILE`. */
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { runMkosi } from '#build/mkosi/mkosi.ts'
import { writeSandbox } from '#build/mkosi/sandbox.ts'

/** What dracut wants for a root that comes by HTTP, beside what the live system has anyway. */
const PACKAGES = ['curl', 'dracut', 'dracut-live', 'dracut-network', 'iproute2', 'iputils-arping']

const text = { type: 'string', default: '' } as const
const { base, out, mkosi, tools, cache, script } = parseArgs({
  options: { base: text, out: text, mkosi: text, tools: text, cache: text, script: text },
}).values

const sandbox = await writeSandbox({ folder: join(out, 'sandbox'), suite: 'trixie' })
const code = await runMkosi({
  mkosi,
  cache,
  // No configuration: a folder of ours that has none.
  directory: out,
  args: [
    '--distribution=debian',
    '--release=trixie',
    '--format=directory',
    '--output=tree',
    '--bootable=no',
    '--with-docs=no',
    '--environment=INITRD=No',
    `--base-tree=${base}`,
    `--tools-tree=${tools}`,
    `--sandbox-tree=${sandbox}`,
    `--output-directory=${out}`,
    `--postinst-script=${resolve(script)}`,
    ...PACKAGES.map((name) => `--package=${name}`),
    '--force',
    'build',
  ],
})
for (const folder of ['sandbox', 'tree']) {
  await rm(join(out, folder), { recursive: true, force: true })
}
process.exitCode = code
