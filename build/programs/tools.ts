/** Builds the tools tree: `tools.ts --mkosi DIR --conf FILE --cache DIR --out DIR`. */
import { copyFile, mkdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parseStatus, writeList } from '#build/debian/list.ts'
import { runMkosi } from '#build/mkosi/mkosi.ts'
import { writeSandbox } from '#build/mkosi/sandbox.ts'

const text = { type: 'string', default: '' } as const
const { mkosi, conf, cache, out } = parseArgs({
  options: { mkosi: text, conf: text, cache: text, out: text },
}).values

// mkosi builds a tools tree only on the way to something else, in the folder of its configuration.
const scratch = join(out, 'scratch')
await mkdir(scratch, { recursive: true })
await copyFile(conf, join(scratch, 'mkosi.conf'))
const sandbox = await writeSandbox({ folder: join(out, 'sandbox'), suite: 'forky' })
const code = await runMkosi({
  mkosi,
  cache,
  directory: scratch,
  args: ['--tools-tree-sandbox-tree', sandbox, '-f', 'box', '--', 'true'],
})
if (code !== 0) process.exit(code)
// mkosi writes an empty manifest for a tools tree, so dpkg is asked.
const status = await readFile(join(scratch, 'mkosi.tools/var/lib/dpkg/status'), 'utf8')
await writeList(join(out, 'packages.json'), parseStatus(status))
await rename(join(scratch, 'mkosi.tools'), join(out, 'root'))
await rm(scratch, { recursive: true })
await rm(sandbox, { recursive: true })
