/** Copies signed UEFI programs, never an unsigned one: `signed-loaders.ts --arch A --shim FILE --grub FILE --config FILE --out DIR`. */
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { TEXT, requireOptions } from '#build/steps/program-options.ts'
import { isSigned, readMachine } from '#build/ipxe/pe.ts'

const { values: given } = parseArgs({
  options: { arch: TEXT, shim: TEXT, grub: TEXT, config: TEXT, out: TEXT },
})
const values = requireOptions(given)
const { arch, shim, grub, config, out } = values

for (const [name, from] of Object.entries({ 'shim.efi': shim, 'grub.efi': grub })) {
  const program = await readFile(from)
  if (readMachine(program) !== arch) throw new Error(`${from} is no program for ${arch}`)
  if (!isSigned(program)) throw new Error(`${from} is not signed: Secure Boot would refuse it`)
  await copyFile(from, join(out, name))
  console.log(`${name}: ${program.length} bytes, signed`)
}
await copyFile(config, join(out, 'grub.cfg'))
