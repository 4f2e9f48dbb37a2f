/** A source tree of iPXE is compiled with our script embedded, and left as it was. */
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('iPXE from source')
const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url))
const hasMake = spawnSync('make', ['--version']).status === 0
const run = hasMake ? test : test.skip

/** In place of a compiler: what goes in comes out. */
const MAKEFILE = 'bin-x86_64-efi/ipxe.efi:\n\tmkdir -p $(@D)\n\tcp $(EMBED) $@\n'

run('the script is embedded, with the address that was asked for', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-ipxe-test-'))
  try {
    await mkdir(join(folder, 'ipxe/src'), { recursive: true })
    await writeFile(join(folder, 'ipxe/src/Makefile'), MAKEFILE)
    const out = join(folder, 'ipxe.efi')
    const words = ['--source', join(folder, 'ipxe'), '--arch', 'x86_64', '--out', out]
    const script = ['--script', 'overlays/ipxe/flasher.ipxe', '--server', 'http://10.0.0.1:8080']
    const program = 'build/programs/ipxe-source.ts'
    const ended = spawnSync(process.execPath, [program, ...words, ...script], {
      cwd: CHECKOUT,
      encoding: 'utf8',
    })
    assert.is(ended.status, 0, ended.stderr)
    assert.match(await readFile(out, 'utf8'), /^#!ipxe\nset server http:\/\/10\.0\.0\.1:8080\n/)
    assert.equal(await readdir(join(folder, 'ipxe/src')), ['Makefile'])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test.run()
