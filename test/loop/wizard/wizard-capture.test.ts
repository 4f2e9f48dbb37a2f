/** The wizard captures a disk, from its first screen to the image, on several terminals. */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { openCaptureLab } from '#test/support/capture/uploads.ts'
import { makeCaptureDisk, mounted, PART_FLAGS } from '#test/support/disk/capture-disks.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, scripted } from '#test/support/disk/faulty-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { isFree } from '#test/support/disk/writer.ts'
import { until } from '#test/support/server/image-cache.ts'
import { goToCapture, goToPlace, nameOf, textOf } from '#test/support/terminal/capture-wizard.ts'
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
    assert.match(
      asked,
      'would contain the identity of this machine: machine-id, SSH host keys. Press g to clear it there.',
    )
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
      assert.match(
        textOf(done),
        'contains the identity of this machine: machine-id, SSH host keys. All machines that',
      )
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
  assert.not.match(done, 'identity of this machine')
  await mounted(await unpack(image), PART_FLAGS, async (at) => {
    assert.is(await readFile(join(at, 'etc/machine-id'), 'utf8'), '')
  })
  await terminal.press('b', 'Enter')
  const disks = await terminal.waitFor(new RegExp(`${device} [^]*> Disk:`))
  await terminal.press(numberOf(disks, device), 'Enter')
  await terminal.waitFor(`for this name:\n  ${image.replace('.img', '-2.img')}`)
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
  await terminal.waitFor(`Image:     ${join(folder, nameOf(source.device))}`)
  await terminal.press('Enter')
  await terminal.waitFor('Where does the image go?')
  await terminal.press(`${folder}/web 42.img`, 'Enter')
  const asked = textOf(await terminal.waitFor('[y] CAPTURE'))
  assert.match(asked, /no table 16\.8 MB unknown all of it: an unknown file system/)
  assert.match(asked, 'The image may contain the identity of this machine: SSH host keys, ')
  await terminal.press('y')
  await terminal.waitFor('? What next?')
  assert.equal(await readdir(folder), ['web 42.img.zst'])
  await run`cmp ${await unpack(join(folder, 'web 42.img.zst'))} ${source.backing}`
})

test('a disk in use cannot be chosen, nor captured once it came into use', async () => {
  await using fixture = await createWizardFixture({})
  await using used = await createLoop({ megabytes: 32 })
  await using late = await createLoop({ megabytes: 32 })
  const point = join(fixture.folder, 'mounted')
  for (const { device } of [used, late]) await run`mkfs.ext4 -q ${device}`
  await run`mount --mkdir ${used.device} ${point}`
  await using terminal = await fixture.open({ columns: 120 })
  await terminal.waitFor('Where do the images come from?')
  await terminal.press('m', 'Enter')
  const disks = await terminal.waitFor(new RegExp(`${late.device} [^]*> Disk:`))
  const row = disks.find((line) => line.includes(`${used.device} `)) ?? ''
  assert.match(row, new RegExp(`^ - .*\\(mounted on ${point}\\)$`))
  await terminal.press(numberOf(disks, used.device), 'Enter')
  await terminal.waitFor(/^Number \d+ cannot be chosen: mounted on /m)
  await terminal.press(numberOf(disks, late.device), 'Enter')
  await terminal.waitFor('> Image:')
  await run`mount --mkdir ${late.device} ${join(fixture.folder, 'late')}`
  await terminal.press('Enter')
  const rejected = await terminal.waitFor('Rejected:')
  assert.match(textOf(rejected), 'source has mounted partitions')
  assert.match(rejected.join('\n'), /^\[b\] back {2}\[q\] quit/m)
  await terminal.press('Enter')
  await terminal.waitFor('Where does the image go?')
  assert.equal(await readdir(fixture.imageRoot), [])
})

test('too little room, a taken name and a folder that cannot be written are rejected', async () => {
  await using fixture = await createWizardFixture({ 'taken.img.zst': 'mine' })
  await using disk = await makeCaptureDisk('ext4')
  await using source = await createLoop({ backing: disk.path })
  const [small, sealed] = [join(fixture.folder, 'small'), join(fixture.folder, 'sealed')]
  await run`mount --mkdir -t tmpfs -o size=1m none ${small}`
  await run`mount --mkdir -t tmpfs -o ro none ${sealed}`
  try {
    await using terminal = await fixture.open()
    await terminal.waitFor('> Image:')
    await terminal.press('b', 'Enter')
    await goToPlace(terminal, source.device)
    for (const [typed, reason] of [
      [`${small}/a`, /free for an image of .*: it cannot fit/],
      ['taken', /taken\.img\.zst exists already/],
      [`${sealed}/a`, /mounted read-only/],
      [`${fixture.folder}/none/a`, /there is no folder/],
    ] as const) {
      await terminal.press(typed, 'Enter')
      const screen = await terminal.waitFor('Rejected:')
      assert.match(textOf(screen), reason)
      assert.ok(await isFree(source.device))
      await terminal.press('b', 'Enter')
      await terminal.waitFor('Where does the image go?')
    }
    assert.equal(await readdir(small), [])
    assert.is(await readFile(join(fixture.imageRoot, 'taken.img.zst'), 'utf8'), 'mine')
  } finally {
    await run`umount ${small} ${sealed}`
  }
})

test('a folder that becomes full on the way leaves nothing, and the screen says why', async () => {
  await using fixture = await createWizardFixture({})
  await using source = await createLoop({ megabytes: 32 })
  await writeFile(source.backing, makeNoise(32 * MIB, 4))
  const small = join(fixture.folder, 'small')
  await run`mount --mkdir -t tmpfs -o size=8m none ${small}`
  try {
    await using terminal = await fixture.open()
    const asked = textOf(await goToCapture(terminal, source.device, `${small}/`))
    assert.match(asked, /8\.39 MB free for an image of 33\.6 MB before compression: it may not fit/)
    await terminal.press('y')
    const failed = textOf(await terminal.waitFor('? What next?'))
    assert.match(failed, /The capture failed: .* cannot be written/)
    assert.match(failed, /The image was removed, and the disk is unchanged\./)
    assert.equal(await readdir(small), [])
    await terminal.press('Enter')
    await terminal.waitFor('[y] CAPTURE')
  } finally {
    await run`umount ${small}`
  }
})

test('Ctrl-C cancels a capture, and nothing is left of it', async () => {
  await using fixture = await createWizardFixture({})
  // Whoever reads behind the first half waits as long as the flag is set.
  const waits = `while [ "$4" -ge ${24 * MIB} ] && [ -e "{}/flag" ]; do sleep 0.05; done`
  await using source = await createFaultyDisk({ nbdkit: scripted(48, { pread: waits }) })
  await using terminal = await fixture.open()
  await goToCapture(terminal, source.device)
  source.setFlag(true)
  await terminal.press('y')
  const screen = await terminal.waitFor(/^ read +[1-9]\d?% /m)
  const path = join(fixture.imageRoot, nameOf(source.device))
  assert.ok(screen.includes(`${source.device} -> ${path}`), screen.join('\n'))
  await terminal.waitFor(/of the image made, \d:\d\d so far/)
  await terminal.press('?')
  await terminal.waitFor(/^Ctrl-C +cancels the capture$/m)
  await terminal.press('x')
  await terminal.waitFor(/^ read +[1-9]\d?% /m)
  await terminal.press('C-c')
  await terminal.waitFor('cancelling ...')
  source.setFlag(false)
  const after = textOf(await terminal.waitFor('? What next?'))
  assert.match(after, 'Cancelled. The image was removed, and the disk is unchanged.')
  assert.equal(await readdir(fixture.imageRoot), [])
  await terminal.press('b', 'Enter')
  await terminal.waitFor('[y] CAPTURE')
  await terminal.press('C-c')
  await terminal.waitFor(`${EXITED}0`)
  assert.ok(await isFree(source.device))
})

test('the end of the terminal leaves nothing either', async () => {
  await using fixture = await createWizardFixture({})
  const waits = `while [ "$4" -ge ${24 * MIB} ] && [ -e "{}/flag" ]; do sleep 0.05; done`
  await using source = await createFaultyDisk({ nbdkit: scripted(48, { pread: waits }) })
  const pid = join(fixture.folder, 'pid')
  const within = ['sh', '-c', `echo $$ > ${pid}; exec "$@"`, 'sh']
  await using terminal = await fixture.open({ within })
  await goToCapture(terminal, source.device)
  source.setFlag(true)
  await terminal.press('y')
  await terminal.waitFor(/^ read +[1-9]\d?% /m)
  process.kill(Number(await readFile(pid, 'utf8')), 'SIGTERM')
  await until(async () => (await readdir(fixture.imageRoot)).length === 0)
  source.setFlag(false)
  await terminal.waitFor(EXITED)
  assert.equal(await readdir(fixture.imageRoot), [])
})

test('into a cache, with a token that is not shown; a wrong one is refused and asked for again', async () => {
  await using fixture = await createWizardFixture({})
  await using lab = await openCaptureLab()
  await using source = await createLoop({ megabytes: 24 })
  await writeFile(source.backing, makeNoise(24 * MIB, 5))
  const name = nameOf(source.device)
  const made = await lab.operator.post('/captures/tokens', { name })
  const token = String(made.body['token'])
  await using terminal = await fixture.open({ columns: 120 })
  await goToPlace(terminal, source.device)
  await terminal.press(lab.base, 'Enter')
  const asked = await terminal.waitFor('> Token:')
  assert.ok(asked.includes(`Image:     ${lab.base}/captures/${name}`), asked.join('\n'))
  await terminal.press('wrong-token', 'Enter')
  await terminal.waitFor('[y] CAPTURE')
  await terminal.press('y')
  assert.match(textOf(await terminal.waitFor('? What next?')), /cannot be uploaded: HTTP 401/)
  await terminal.press('b', 'Enter')
  await terminal.waitFor('[y] CAPTURE')
  await terminal.press('b', 'Enter')
  await terminal.waitFor('> Image:')
  await terminal.press(`${lab.base}/captures/${name}`, 'Enter')
  await terminal.waitFor('> Token:')
  await terminal.press(token)
  await terminal.waitFor(/^> Token: \*{20,}$/m)
  await terminal.press('Enter')
  await terminal.waitFor('[y] CAPTURE')
  await terminal.press('y')
  const done = textOf(await terminal.waitFor('? What next?'))
  assert.match(done, `${lab.base}/captures/${name}`)
  assert.match(done, 'An operator has to accept the image')
  const history = await terminal.history()
  assert.not.match(history, token)
  assert.not.match(history, 'wrong-token')
  const { captures } = Object((await lab.operator.ask('GET', '/captures')).body)
  const [{ status, sha256, warnings }] = captures
  assert.equal([captures.length, status, warnings.length], [1, 'waiting', 1])
  assert.match(done, sha256)
})

/** As the live system has it: read-only at two places. */
const STICK = [
  'mkdir -p /run/flasher',
  'mount -t tmpfs tmpfs /run/flasher',
  'mount -t tmpfs tmpfs /var/lib',
  'mkdir -p /run/flasher/stick /var/lib/flasher/images',
  'mount -o ro "$STICK" /run/flasher/stick',
  'mount --bind /run/flasher/stick /var/lib/flasher/images',
].join(' && ')

test('onto the images partition of a stick, which is read-only before and afterwards', async () => {
  await using fixture = await createWizardFixture({})
  await using stick = await createLoop({ megabytes: 64 })
  await run`mkfs.ext4 -q ${stick.device}`
  await using source = await createLoop({ megabytes: 8 })
  const imageRoot = '/var/lib/flasher/images'
  const after = 'grep "$STICK " /proc/self/mounts; echo mounted'
  const within = ['unshare', '--mount', 'sh', '-c', `${STICK} && "$@"; ${after}`, 'sh']
  const env = { STICK: stick.device, FLASHER_IMAGE_ROOT: imageRoot }
  await using terminal = await fixture.open({ within, env, columns: 120 })
  await goToCapture(terminal, source.device)
  await terminal.press('y')
  await terminal.waitFor('? What next?')
  assert.match(textOf(await terminal.screen()), `${imageRoot}/${nameOf(source.device)}`)
  await terminal.press('q', 'Enter')
  const screen = (await terminal.waitFor(/^mounted$/m)).join('\n')
  const mounts = screen.match(new RegExp(`^${stick.device} \\S+ ext4 ro,`, 'gm')) ?? []
  assert.is(mounts.length, 2, screen)
})

test.run()
