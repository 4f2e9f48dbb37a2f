/** The wizard captures a disk, from its first screen to the image, on several terminals. */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { makeCaptureDisk, mounted, PART_FLAGS } from '#test/support/disk/capture-disks.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { isFree } from '#test/support/disk/writer.ts'
import { goToCapture, nameOf, textOf } from '#test/support/terminal/capture-wizard.ts'
import { EXITED } from '#test/support/terminal/tmux.ts'
import {
  createWizardFixture,
  numberOf,
  type WizardOptions,
} from '#test/support/terminal/wizard-fixture.ts'

const test = suite('wizard captures')
const run = $({ quiet: true })
const MIB = 2 ** 20
const IDENTITY = {
  'etc/machine-id': `${'a'.repeat(32)}\n`,
  'etc/ssh/ssh_host_ed25519_key': 'secret words of this host\n',
}

async function unpack(image: string): Promise<string> {
  await run`zstd -qdf ${image} -o ${`${image}.raw`}`
  return `${image}.raw`
}

const digestOf = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex')

const SCREENS: readonly (readonly [string, WizardOptions])[] = [
  ['80x24', { rows: 24 }],
  ['200x50 without colours', { columns: 200, rows: 50, env: { NO_COLOR: '1' } }],
  ['80x24 on a serial line', { rows: 24, env: { TERM: 'vt220', LANG: 'C' } }],
  ['40x12', { columns: 40, rows: 12 }],
  ['lines alone', { rows: 50, env: { TERM: 'dumb' } }],
]
for (const [name, options] of SCREENS) {
  test(`${name}: from the first screen to the image`, async () => {
    await using fixture = await createWizardFixture({})
    await using disk = await makeCaptureDisk('ext4', { files: IDENTITY })
    await using source = await createLoop({ backing: disk.path })
    const { device } = source
    const before = await digestOf(disk.path)
    const image = join(fixture.imageRoot, nameOf(device))
    const env = { ...options.env, FLASHER_OFFER_LOOP: device }
    await using terminal = await fixture.open({ ...options, env })
    const asked = textOf(await goToCapture(terminal, device))
    assert.match(asked, `${device} is opened read-only: nothing on it changes.`)
    assert.match(asked, 'would be in the image: machine-id, SSH host keys. g clears it there.')
    if (name !== '40x12') {
      assert.match(asked, /\d\d\.\d MB of 111 MB will be read\./)
      assert.match(
        asked,
        /1 2\.10 MB swap used blocks: 4\.10 kB 2 101 MB ext4 used blocks: \d\d\.\d MB/,
      )
    }
    await terminal.press('y', ...(name === 'lines alone' ? ['Enter'] : []))
    const done = await terminal.waitFor(/What next\?[^]*quit/)
    const told = done.join('\n').replaceAll(/\n +/g, name === '40x12' ? '' : '\n')
    for (const line of done) assert.ok(line.length < (options.columns ?? 80), line)
    assert.match(told, image)
    if (name !== '40x12') {
      assert.match(told, await digestOf(image))
      assert.match(textOf(done), 'is in the image: machine-id, SSH host keys. Machines that')
    }
    await terminal.press('q', 'Enter')
    await terminal.waitFor(`${EXITED}0`)
    assert.equal(await readdir(fixture.imageRoot), [nameOf(device)])
    assert.is(await digestOf(disk.path), before)
    assert.ok(await isFree(device))
    await mounted(await unpack(image), PART_FLAGS, async (at) => {
      assert.is(await readFile(join(at, 'etc/machine-id'), 'utf8'), IDENTITY['etc/machine-id'])
    })
  })
}

test('g clears the identity in the image, and the second image gets another name', async () => {
  await using fixture = await createWizardFixture({})
  await using disk = await makeCaptureDisk('ext4', { files: IDENTITY })
  await using source = await createLoop({ backing: disk.path })
  const { device } = source
  const image = join(fixture.imageRoot, nameOf(device))
  await using terminal = await fixture.open()
  await goToCapture(terminal, device)
  await terminal.press('g')
  await terminal.waitFor('Cleared in the image, not on the disk: machine-id, SSH host keys.')
  await terminal.press('y')
  const done = textOf(await terminal.waitFor('? What next?'))
  assert.not.match(done, 'The identity of this machine')
  await mounted(await unpack(image), PART_FLAGS, async (at) => {
    assert.is(await readFile(join(at, 'etc/machine-id'), 'utf8'), '')
  })
  await terminal.press('b', 'Enter')
  const disks = await terminal.waitFor(new RegExp(`${device} [^]*> Disk:`))
  await terminal.press(numberOf(disks, device), 'Enter')
  await terminal.waitFor(`takes this name:\n  ${image.replace('.img', '-2.img')}`)
  await terminal.press('b', 'Enter')
  await terminal.waitFor('> Disk:')
  await terminal.press('b', 'Enter')
  await terminal.waitFor('Where do the images come from?')
})

test('from the list of images, to a folder and under a name of its own', async () => {
  await using fixture = await createWizardFixture()
  await using source = await createLoop({ megabytes: 16 })
  await writeFile(source.backing, makeNoise(16 * MIB, 3))
  const folder = join(fixture.folder, 'stick')
  await mkdir(folder)
  await using terminal = await fixture.open()
  await terminal.waitFor('[m] capture')
  await terminal.press('m', 'Enter')
  const disks = await terminal.waitFor(new RegExp(`${source.device} [^]*> Disk:`))
  assert.match(disks.join('\n'), /^Disk 1 of 3 +\[Disk\] > Image > Capture$/m)
  await terminal.press(numberOf(disks, source.device), 'Enter')
  await terminal.waitFor('> Image:')
  await terminal.press(folder, 'Enter')
  await terminal.waitFor(`image:      ${join(folder, nameOf(source.device))}`)
  await terminal.press('Enter')
  await terminal.waitFor('Where does the image go?')
  await terminal.press(`${folder}/web 42.img`, 'Enter')
  const asked = textOf(await terminal.waitFor('[y] CAPTURE'))
  assert.match(asked, /no table 16\.8 MB unknown all of it: no file system that is known/)
  assert.match(asked, 'The identity of this machine may be in the image: SSH host keys, ')
  await terminal.press('y')
  await terminal.waitFor('? What next?')
  assert.equal(await readdir(folder), ['web 42.img.zst'])
  await run`cmp ${await unpack(join(folder, 'web 42.img.zst'))} ${source.backing}`
})

test.run()
