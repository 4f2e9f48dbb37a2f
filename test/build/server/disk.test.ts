/** The disk of the server appliance: its partitions, its boot sector, and what its boot loader starts. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  mkdtempSync,
  rmSync,
  truncateSync,
  writeFileSync,
  openSync,
  writeSync,
  closeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planBios } from '../../../build/server/bios.ts'
import { renderGrubEnvironment, SERVER_GRUB_CONFIG } from '../../../build/server/grub.ts'
import { planServerDisk } from '../../../build/server/layout.ts'

const test = suite('disk of the server appliance')
const has = (program: string) => spawnSync(program, ['--version']).status === 0
const withSfdisk = has('sfdisk') ? test : test.skip

withSfdisk('two slots of one size, and the state last, as sfdisk reads them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'flasher-server-'))
  try {
    const disk = join(folder, 'disk')
    const { sectors, pieces, bios } = planServerDisk('1.2.3')
    const boot = planBios({
      boot: Buffer.alloc(512),
      core: Buffer.alloc(9000),
      sector: bios,
      sectors: 2048,
    })
    writeFileSync(disk, '')
    truncateSync(disk, sectors * 512)
    const file = openSync(disk, 'r+')
    for (const { sector, bytes } of [{ sector: 0, bytes: boot.first }, ...pieces]) {
      writeSync(file, bytes, 0, bytes.length, sector * 512)
    }
    closeSync(file)
    const said = execFileSync('sfdisk', ['--dump', disk], { encoding: 'utf8' })
    const names = [...said.matchAll(/name="([^"]*)"/g)].map(([, name]) => name)
    assert.equal(names, ['flasher-bios', 'flasher-efi', 'flasher_1.2.3', '_empty', 'flasher-state'])
    const sizes = [...said.matchAll(/size= *(\d+)/g)].map(([, size]) => Number(size))
    assert.is(sizes[2], sizes[3])
    assert.is(spawnSync('sfdisk', ['--verify', disk]).status, 0)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the boot sector leads to the core, and the core to its own sectors', () => {
  const core = Buffer.alloc(3 * 512 + 1, 7)
  const planned = planBios({ boot: Buffer.alloc(512, 1), core, sector: 2048, sectors: 2048 })
  assert.is(planned.first.readBigUInt64LE(0x5c), 2048n)
  assert.is(planned.first.readUInt16LE(510), 0xaa55)
  assert.is(planned.first[450], 0xee)
  assert.is(planned.core.length, 4 * 512)
  assert.is(planned.core.readBigUInt64LE(500), 2049n)
  assert.is(planned.core.readUInt16LE(508), 3)
  assert.throws(() => planBios({ boot: core, core, sector: 1, sectors: 3 }), /takes 4 sectors/)
})

const withGrub = has('grub-script-check') ? test : test.skip

withGrub('GRUB accepts the configuration', () => {
  const folder = mkdtempSync(join(tmpdir(), 'flasher-grub-'))
  try {
    const file = join(folder, 'grub.cfg')
    writeFileSync(file, SERVER_GRUB_CONFIG)
    const { status, stderr } = spawnSync('grub-script-check', [file], { encoding: 'utf8' })
    assert.is(status, 0, stderr)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test("GRUB's own variables are left alone", () => {
  for (const name of ['chosen', 'root', 'prefix']) {
    assert.not.match(SERVER_GRUB_CONFIG, new RegExp(`set ${name}=`), name)
  }
})

test('what the boot loader keeps always has the size that it overwrites in place', () => {
  const text = renderGrubEnvironment({ good: '1.2.3' })
  assert.is(text.length, 1024)
  assert.ok(text.startsWith('# GRUB Environment Block\ngood=1.2.3\n#'))
})

test.run()
