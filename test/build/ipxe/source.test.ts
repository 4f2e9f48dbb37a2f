/** A source tree of iPXE is compiled with our script embedded, and left as it was. */
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { APPLIANCES } from '#appliance/all.ts'
import { planImages } from '#build/plan.ts'
import type { BuildEvent } from '#build/progress.ts'
import { runSteps } from '#build/run.ts'

const test = suite('iPXE from source')
const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url))
const hasMake = spawnSync('make', ['--version']).status === 0
const run = hasMake ? test : test.skip

/** In place of a compiler: what goes in comes out. */
const MAKEFILE = [
  'VERSION_MAJOR\t= 2',
  'VERSION_MINOR\t= 0',
  'VERSION_PATCH\t= 1',
  'bin-x86_64-efi/ipxe.efi:\n\tmkdir -p $(@D)\n\tcp $(EMBED) $@\n',
].join('\n')

run('the script is embedded, with the address that was asked for', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-ipxe-test-'))
  try {
    await mkdir(join(folder, 'ipxe/src'), { recursive: true })
    await writeFile(join(folder, 'ipxe/src/Makefile'), MAKEFILE)
    const out = join(folder, 'ipxe.efi')
    const list = join(folder, 'programs.json')
    const words = [
      '--source',
      join(folder, 'ipxe'),
      '--arch',
      'x86_64',
      '--out',
      out,
      '--list',
      list,
    ]
    const script = ['--script', 'overlays/ipxe/flasher.ipxe', '--server', 'http://10.0.0.1:8080']
    const program = 'build/programs/ipxe-source.ts'
    const ended = spawnSync(process.execPath, [program, ...words, ...script], {
      cwd: CHECKOUT,
      encoding: 'utf8',
    })
    assert.is(ended.status, 0, ended.stderr)
    assert.match(await readFile(out, 'utf8'), /^#!ipxe\nset server http:\/\/10\.0\.0\.1:8080\n/)
    assert.equal(await readdir(join(folder, 'ipxe/src')), ['Makefile'])
    const programs = JSON.parse(await readFile(list, 'utf8'))
    assert.equal(programs, [{ name: 'ipxe', version: '2.0.1' }])
  } finally {
    await rm(folder, { recursive: true })
  }
})

run('a tree in which a file was edited is compiled anew', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-ipxe-test-'))
  try {
    const source = join(folder, 'ipxe')
    await mkdir(join(source, 'src'), { recursive: true })
    await writeFile(join(source, 'src/Makefile'), MAKEFILE)
    const ipxe = APPLIANCES.filter(({ shape }) => shape === 'ipxe')
    const facts = { version: '1.2.3', epoch: 1_760_000_000, level: 'dev' } as const
    const options = { appliances: ipxe, facts, ipxeServer: null, ipxeSource: source }
    const steps = planImages(options).steps.filter(({ name }) => name === 'ipxe-x86_64')
    const build = async () => {
      const told: string[] = []
      const say = ({ event }: BuildEvent) => told.push(event)
      await runSteps({ steps, checkout: CHECKOUT, cache: join(folder, 'cache'), say })
      return told
    }
    assert.equal(await build(), ['started', 'made'])
    assert.equal(await build(), ['cached'])
    await writeFile(join(source, 'src/more.c'), '/* */\n')
    assert.equal(await build(), ['started', 'made'])
    await rm(join(source, 'src/more.c'))
    assert.equal(await build(), ['cached'])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test.run()
