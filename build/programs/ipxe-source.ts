/** Compiles iPXE for UEFI with our script embedded: `ipxe-source.ts --source DIR --arch A --script FILE [--server URL] --out FILE --list FILE`. */
import { copyFile, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { $ } from 'zx/core'
import { renderCarried } from '#build/ipxe/script.ts'
import { parseVersion } from '#build/ipxe/version.ts'

/** The target in iPXE's Makefile, and the cross compiler for hosts with another processor. */
const TARGETS = {
  x86_64: { folder: 'bin-x86_64-efi', node: 'x64', compiler: 'x86_64-linux-gnu-' },
  arm64: { folder: 'bin-arm64-efi', node: 'arm64', compiler: 'aarch64-linux-gnu-' },
} as const

const text = { type: 'string' } as const
const { values } = parseArgs({
  options: { source: text, arch: text, script: text, server: text, out: text, list: text },
})
const { source, arch, script, server = null, out, list } = values
if (source === undefined || script === undefined || out === undefined || list === undefined) {
  throw new Error('--source, --script, --out and --list are required')
}
if (arch !== 'x86_64' && arch !== 'arm64') throw new Error('--arch must be x86_64 or arm64')

// A copy: the compiler's output would otherwise be an input next time. It lies beside the result, so
// that an interrupted build removes both.
const workspace = await mkdtemp(`${out}.`)
try {
  const tree = join(workspace, 'ipxe')
  await cp(source, tree, { recursive: true })
  const carried = join(workspace, 'flasher.ipxe')
  await writeFile(carried, renderCarried(await readFile(script, 'utf8'), server))
  const { folder, node, compiler } = TARGETS[arch]
  const cross = process.arch === node ? [] : [`CROSS_COMPILE=${compiler}`]
  const target = `${folder}/ipxe.efi`
  await $({
    stdio: 'inherit',
  })`make -C ${join(tree, 'src')} -j2 EMBED=${carried} ${cross} ${target}`
  await copyFile(join(tree, 'src', target), out)
  const version = parseVersion(await readFile(join(source, 'src/Makefile'), 'utf8'))
  await writeFile(list, `${JSON.stringify([{ name: 'ipxe', version }], null, 2)}\n`)
} finally {
  await rm(workspace, { recursive: true, force: true })
}
