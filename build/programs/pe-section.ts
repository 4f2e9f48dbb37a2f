/** Adds a section to an iPXE for UEFI with the script that it runs: `pe-section.ts --program FILE --script FILE [--server URL] --out FILE`. */
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { addSection, readMachine } from '#build/ipxe/pe.ts'
import { renderCarried } from '#build/ipxe/script.ts'
import { renderStub } from '#build/ipxe/stub.ts'

const text = { type: 'string' } as const
const { values } = parseArgs({ options: { program: text, script: text, server: text, out: text } })
const { program, script, server = null, out } = values
if (program === undefined || script === undefined || out === undefined) {
  throw new Error('--program, --script and --out are required')
}
const original = await readFile(program)
const carried = renderCarried(await readFile(script, 'utf8'), server)
const processor = readMachine(original)
const made = addSection(original, {
  name: '.flash',
  render: (place) => renderStub(processor, `ipxe ${carried}`, place),
})
await writeFile(out, made)
console.log(`${out}: ${made.length} bytes for ${processor}, the script has ${carried.length}`)
