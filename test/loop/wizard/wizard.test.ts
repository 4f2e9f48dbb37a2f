import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDisks } from '#engine/disk/disks.ts'
import { createShell } from '#kit/host/shell.ts'
import { makeContent } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, gated } from '#test/support/disk/faulty-disk.ts'
import { EXITED, type Terminal } from '#test/support/terminal/tmux.ts'
import {
  createTarget,
  createWizardFixture,
  goToConfirm,
  numberOf,
  type WizardFixture,
  type WizardOptions,
} from '#test/support/terminal/wizard-fixture.ts'

const test = suite('wizard screens')
const shell = createShell({ env: process.env })

/** A machine may run from what is no disk: from the network, from memory. */
const hasSystemDisk = async () =>
  (await createDisks({ shell }).survey()).some(({ device }) =>
    device.uses.some(({ kind }) => kind === 'running-system'),
  )

async function partition(device: string) {
  const table = 'label: gpt\nsize=8M, type=U, name="EFI system"\ntype=L\n'
  await shell.require(['sfdisk', '--quiet', '--no-reread', device], { input: table })
  await shell.require(['partx', '--add', device])
  await shell.require(['mkfs.ext4', '-q', '-L', 'rootfs', `${device}p2`])
  // 8 MiB: 16 heads of 32 sectors, 32 tracks.
  const geometry = ['-h', '16', '-s', '32', '-t', '32']
  await shell.require(['mformat', '-i', `${device}p1`, ...geometry, '-v', 'ESP', '::'])
}

const LOOKS = [
  { columns: 80, rows: 25, colour: true },
  { columns: 80, rows: 25, colour: false },
  { columns: 200, rows: 50, colour: true },
  { columns: 200, rows: 50, colour: false },
] as const

/** What holds on every screen. */
async function check(
  terminal: Terminal,
  step: string,
  { columns, colour }: (typeof LOOKS)[number],
) {
  const screen = await terminal.screen()
  const text = screen.join('\n')
  const [first = '', second = ''] = screen
  assert.match(first, /^flasher \d+\.\d+\.\d+\S* {2}standalone/, text)
  assert.match(second, new RegExp(`^${step} \\d of 4`), text)
  assert.ok(second.includes(`[${step}]`), text)
  assert.match(text, /^Images in: \//m)
  assert.match(text, /^Catalog: {3}/m)
  for (const line of screen) assert.ok(line.length < columns, line)
  assert.is((await terminal.painted()).includes('\u001b['), colour)
}

for (const look of LOOKS) {
  const { columns, rows, colour } = look
  test(`every screen at ${columns}x${rows}, ${colour ? 'in colour' : 'without colours'}`, async () => {
    await using fixture = await createWizardFixture()
    await using target = await createTarget()
    const env = colour ? {} : { NO_COLOR: '1' }
    await using terminal = await fixture.open({ columns, rows, env })
    // An image lies here, so the catalog is not asked for.
    await terminal.waitFor('> Image:')
    await check(terminal, 'Image', look)
    await terminal.waitFor(/^Catalog: {3}skipped, as this machine/m)
    await terminal.press('b', 'Enter')
    const catalogs = await terminal.waitFor('? Where do the images come from?')
    await check(terminal, 'Catalog', look)
    assert.match(catalogs.join('\n'), /^- {5}default +\(none set; name one in FLASHER_DEFAULT/m)
    await terminal.press('c', 'Enter')
    await terminal.waitFor('> Location:')
    await check(terminal, 'Catalog', look)
    await terminal.press('q', 'Enter')
    const question = await goToConfirm(terminal, 'debian-13-amd64.img', target.device)
    await check(terminal, 'Flash', look)
    const asked = question.join('\n')
    assert.match(asked, /debian-13-amd64\.img: img, 8\.39 MB/)
    assert.ok(asked.includes(`Everything on ${target.device} will be lost`), asked)
    assert.match(asked, /\[y\] ERASE AND FLASH {2}\[b\] back {2}\[q\] quit {2}\[\?\] help/)
    await terminal.press('y')
    const done = await terminal.waitFor('? What next?')
    await check(terminal, 'Flash', look)
    assert.match(
      done.join('\n').replaceAll('\n', ' '),
      /Wrote 8\.39 MB \(8388608 bytes\) to .*, verified\./,
    )
    assert.ok(
      fixture.content.equals((await readFile(target.backing)).subarray(0, fixture.content.length)),
    )
    await terminal.press('b', 'Enter')
    const again = await terminal.waitFor(new RegExp(`${target.device} [^]*> Disk:`))
    assert.ok(again.some((line) => line.startsWith('Image:     debian-13')))
    await check(terminal, 'Disk', look)
    await terminal.press('q', 'Enter')
    await terminal.waitFor(`${EXITED}0`)
  })
}

test('the confirm screen names what will be lost', async () => {
  await using fixture = await createWizardFixture()
  await using target = await createTarget({ megabytes: 64 })
  await partition(target.device)
  await using terminal = await fixture.open()
  const text = (await goToConfirm(terminal, 'debian-13-amd64.img', target.device)).join('\n')
  assert.match(text, new RegExp(`${target.device}p1 +8\\.39 MB +vfat +ESP / EFI system`), text)
  assert.match(text, new RegExp(`${target.device}p2 +5\\d\\.\\d MB +ext4 +rootfs`), text)
  await terminal.press('Enter')
  await terminal.waitFor('> Disk:')
})

test('what cannot be chosen says why, and cannot be chosen', async () => {
  await using fixture = await createWizardFixture({ 'big.img': Buffer.alloc(48 * 2 ** 20, 1) })
  await using mounted = await createTarget({ megabytes: 64 })
  await using sealed = await createTarget({ megabytes: 64, readonly: true })
  await using small = await createTarget({ megabytes: 32 })
  const point = join(fixture.folder, 'mounted')
  await shell.require(['mkfs.ext4', '-q', mounted.device])
  await shell.require(['mount', '--mkdir', mounted.device, point])
  // The system's disk is the last row, and tests beside this one have disks too: one page holds all.
  await using terminal = await fixture.open({ columns: 120, rows: 80 })
  await terminal.waitFor('> Image:')
  await terminal.press('1', 'Enter')
  const screen = await terminal.waitFor(/too small: the image needs 50\.3 MB/)
  const rowOf = (device: string) => screen.find((line) => line.includes(`${device} `)) ?? ''
  assert.match(rowOf(mounted.device), new RegExp(`^ - .*\\(mounted on ${point}\\)$`))
  assert.match(rowOf(sealed.device), /^ - .*\(read-only\)$/)
  assert.match(rowOf(small.device), /^ - .*\(too small: the image needs 50\.3 MB\)$/)
  assert.ok(
    screen.some((line) => line.startsWith(' - ') && line.endsWith('(this system runs from it)')) ||
      !(await hasSystemDisk()),
    screen.join('\n'),
  )
  await terminal.press(numberOf(screen, sealed.device), 'Enter')
  await terminal.waitFor(/^Number \d+ cannot be chosen: read-only\.$/m)
})

test('keys: numbers, arrows, filter, words, and what is none of them', async () => {
  const names = Array.from(
    { length: 40 },
    (_, index) => `image-${String(index + 1).padStart(2, '0')}.img`,
  )
  await using fixture = await createWizardFixture(
    Object.fromEntries(names.map((name) => [name, 'content'])),
  )
  await using terminal = await fixture.open()
  const first = await terminal.waitFor('> Image:')
  assert.ok(
    first.some((line) => line.includes('1 to 14 of 40; PgUp and PgDn turn the page')),
    first.join('\n'),
  )
  assert.ok(first.some((line) => line.startsWith('Images in: ')))
  await terminal.press('PageDown')
  await terminal.waitFor(/^ > {2}1 {2}image-01\.img/m)
  await terminal.press('PageDown')
  await terminal.waitFor(/^ > 15 {2}image-15\.img[^]*15 to 28 of 40/m)
  await terminal.press('Up')
  await terminal.waitFor(/^ > 14 {2}image-14\.img/m)
  await terminal.press('/', '3', '7')
  const filtered = await terminal.waitFor(/^ > 37 {2}image-37\.img/m)
  assert.is(filtered.filter((line) => line.includes('image-')).length, 1)
  await terminal.press('Escape')
  await terminal.waitFor(/1 to 14 of 40/)
  await terminal.press('99', 'Enter')
  await terminal.waitFor('"99" is out of range; valid image numbers are 1..40.')
  await terminal.press('nonsense', 'Enter')
  await terminal.waitFor(
    'Unrecognised choice "nonsense"; type a number from 1 to 40, b, m, r or q.',
  )
  await writeFile(join(fixture.imageRoot, 'a-new-one.img'), 'content')
  await terminal.press('Enter')
  await terminal.waitFor('Type a number from 1 to 40, b, m, r or q.')
  await terminal.press('r', 'Enter')
  await terminal.waitFor(/ 1 {2}a-new-one\.img/)
  await terminal.press('BACK', 'Enter')
  await terminal.waitFor('? Where do the images come from?')
  await terminal.press('local', 'Enter')
  await terminal.waitFor('> Image:')
  await terminal.press('exit', 'Enter')
  await terminal.waitFor(`${EXITED}0`)
})

test('a location is taken as it is typed, and one that leads nowhere leaves the local images', async () => {
  await using fixture = await createWizardFixture()
  const catalog = join(fixture.folder, 'Catalog Of The LAB.toml')
  await writeFile(
    catalog,
    'version = 1\n[[images]]\nname = "Remote.img"\nsrc = "http://127.0.0.1:9/Remote.img"\nsize_bytes = 5\n',
  )
  await using terminal = await fixture.open({ columns: 120 })
  await terminal.waitFor('> Image:')
  await terminal.press('b', 'Enter')
  await terminal.waitFor('? Where do the images come from?')
  await terminal.press('c', 'Enter')
  await terminal.waitFor('> Location:')
  await terminal.press('-l', `${catalog}x`)
  await terminal.press('BSpace')
  await terminal.press('Enter')
  const screen = await terminal.waitFor('Remote.img')
  assert.ok(screen.includes(`Catalog:   ${catalog}`), screen.join('\n'))
  assert.match(screen.join('\n'), /1 {2}debian-13-amd64\.img.*local[^]*2 {2}Remote\.img.*remote/)
  await writeFile(catalog, 'version = 1\nimages = [\n')
  await terminal.press('r', 'Enter')
  await terminal.waitFor(/^Catalog not loaded: .*line \d/m)
  assert.match((await terminal.screen()).join('\n'), /1 {2}debian-13-amd64\.img/)
})

test('on 80 columns the reason of a failure is shown to its end', async () => {
  await using fixture = await createWizardFixture()
  const catalog = join(fixture.folder, `a-catalog-with-a-long-name-${'x'.repeat(40)}.toml`)
  await writeFile(catalog, 'version = 1\n[[images]]\nname = "never closed\n')
  await using terminal = await fixture.open({ argv: ['--catalog', catalog] })
  const screen = await terminal.waitFor('Catalog not loaded:')
  const [, reason = ''] = screen.join('\n').split('Catalog not loaded:')
  assert.match(reason.split('\n\n')[0]?.replaceAll('\n', ' ') ?? '', /line 3: .*\(column \d+\)$/)
  assert.match(screen.join('\n'), /1 {2}debian-13-amd64\.img/)
})

test('Ctrl-C and the end of the input leave, with exit code 0', async () => {
  await using fixture = await createWizardFixture()
  for (const key of ['C-c', 'C-d']) {
    await using terminal = await fixture.open()
    await terminal.waitFor('> Image:')
    await terminal.press(key)
    await terminal.waitFor(`${EXITED}0`)
  }
})

test('consoles without Unicode or without redrawing get plain characters', async () => {
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  for (const TERM of ['linux', 'vt220', 'dumb']) {
    await using terminal = await fixture.open({ env: { TERM } })
    const question = await goToConfirm(terminal, 'debian-13-amd64.img', target.device)
    assert.not.match(question.join('\n'), /[^\n -~]/)
    await terminal.press('y', 'Enter')
    await terminal.waitFor(TERM === 'dumb' ? '> Next:' : '? What next?')
    assert.not.match(await terminal.history(), /[^\n -~]/)
    await terminal.press('Enter')
    await terminal.waitFor(`${EXITED}0`)
  }
})

test('a terminal that is not for UTF-8 gets names in ASCII', async () => {
  await using fixture = await createWizardFixture({ 'Größe-日本.img': Buffer.alloc(4096, 1) })
  for (const TERM of ['xterm', 'dumb']) {
    await using terminal = await fixture.open({ env: { TERM, LANG: 'C' } })
    const screen = await terminal.waitFor('> Image:')
    assert.ok(
      screen.some((line) => line.includes('  Gro?e-????.img  ')),
      screen.join('\n'),
    )
  }
})

test('a server that is not used is named, with the reason', async () => {
  await using fixture = await createWizardFixture()
  const argv = ['--server=http://127.0.0.1:2', `--catalog=${fixture.folder}/none.toml`]
  const named = /^flasher \S+ {2}http:\/\/127\.0\.0\.1:2 /m
  await using alone = await fixture.open({ argv, columns: 200 })
  await alone.waitFor(named)
  await alone.waitFor(
    /^The server http:\/\/127\.0\.0\.1:2 is not used, because.*MAC.*flasher\.mac=/m,
  )
  // Another console of this machine follows it.
  const env = { FLASHER_LIVE_MAC: '52:54:00:00:00:01', FLASHER_LIVE_SERVER: 'http://127.0.0.1:2' }
  await using beside = await fixture.open({ argv, env, columns: 200 })
  await beside.waitFor(named)
  const screen = await beside.waitFor('> Image:')
  assert.not.ok(screen.some((line) => line.includes('is not used')))
})

test('a terminal that changes its size is drawn anew, with what was typed', async () => {
  await using fixture = await createWizardFixture()
  await using terminal = await fixture.open({ columns: 100, rows: 30 })
  await terminal.waitFor('> Image:')
  await terminal.press('Down', '1')
  await terminal.waitFor('> Image: 1')
  for (const [columns, rows] of [
    [60, 16],
    [132, 43],
    [80, 25],
  ] as const) {
    await terminal.resize(columns, rows)
    const right = '[Flash]'.length
    await terminal.waitFor(new RegExp(`^.{${columns - 1 - right},${columns - 1}}> Flash$`, 'm'))
    const screen = await terminal.waitFor('> Image: 1')
    assert.is(screen.filter((line) => line.startsWith('flasher ')).length, 1)
    for (const line of screen) assert.ok(line.length < columns)
  }
  await terminal.press('Enter')
  await terminal.waitFor('> Disk:')
})

const HELP_LOOKS = [
  { columns: 80, rows: 25, env: {} },
  { columns: 200, rows: 50, env: {} },
  { columns: 80, rows: 25, env: { TERM: 'linux' } },
  { columns: 80, rows: 25, env: { TERM: 'vt220' } },
] as const

/** `?` shows the help of this screen, any key the screen again. */
async function readHelp(terminal: Terminal, title: RegExp, back: string, columns: number) {
  await terminal.press('?')
  const help = await terminal.waitFor('Any key: back to the screen.')
  assert.match(help.join(' '), title)
  assert.match(help.join('\n'), /^\? +shows this help$/m)
  for (const line of help) assert.ok(line.length < columns, line)
  // A key that would do something on the screen itself.
  await terminal.press('y')
  await terminal.waitFor(back)
}

for (const { columns, rows, env } of HELP_LOOKS) {
  const name = `${columns}x${rows} ${'TERM' in env ? env.TERM : 'with Unicode'}`
  test(`the last line names the keys, and ? explains every screen: ${name}`, async () => {
    const content = makeContent(2 ** 20)
    await using fixture = await createWizardFixture({ 'a.img': content, 'b.img': content })
    await using target = await createTarget()
    await using terminal = await fixture.open({ columns, rows, env })
    const images = await terminal.waitFor('> Image:')
    assert.match(images.join('\n'), /^\[(↑↓|arrows)\] choose {2}\[\/\] filter .*\[\?\] help$/m)
    await readHelp(terminal, /Choose the image to write/, '> Image:', columns)
    await terminal.press('b', 'Enter')
    const catalogs = await terminal.waitFor('? Where do the images come from?')
    assert.match(catalogs.join('\n'), /\?:? help$/m)
    await readHelp(terminal, /Choose where the images come from/, 'Where do the images', columns)
    await terminal.press('c', 'Enter')
    await terminal.waitFor('> Location:')
    await readHelp(terminal, /Type the location of a catalog/, '> Location:', columns)
    await terminal.press('q', 'Enter')
    await goToConfirm(terminal, 'a.img', target.device)
    await readHelp(terminal, /Nothing has been written yet/, 'ERASE AND FLASH', columns)
    await terminal.press('b', 'Enter')
    const disks = await terminal.waitFor(new RegExp(`${target.device} [^]*> Disk:`))
    assert.match(disks.join('\n'), /^\[(↑↓|arrows)\] choose {2}.*\[b\] image .*\[\?\] help$/m)
    await readHelp(terminal, /Everything on it will be lost/, '> Disk:', columns)
    await terminal.press('C-c')
    await terminal.waitFor(`${EXITED}0`)
  })
}

test('Ctrl-C leaves from within the help', async () => {
  await using fixture = await createWizardFixture({})
  await using terminal = await fixture.open()
  await terminal.waitFor('? Where do the images come from?')
  await terminal.press('?')
  await terminal.waitFor('Any key: back')
  await terminal.press('C-c')
  await terminal.waitFor(`${EXITED}0`)
})

test('on a small terminal the help has pages', async () => {
  await using fixture = await createWizardFixture()
  await using terminal = await fixture.open({ columns: 40, rows: 12, env: { TERM: 'vt220' } })
  await terminal.waitFor('> Image:')
  await terminal.press('?')
  await terminal.waitFor('Any key: more help.')
  await terminal.press('Space')
  await terminal.waitFor('1, 2, ...')
  await terminal.press('Space')
  await terminal.waitFor('m, make')
  await terminal.press('Space')
  await terminal.waitFor('Any key: back to the screen.')
  await terminal.press('Space')
  await terminal.waitFor('> Image:')
})

test('a terminal that cannot redraw prints the help and asks again', async () => {
  await using fixture = await createWizardFixture()
  await using terminal = await fixture.open({ env: { TERM: 'dumb' }, rows: 50 })
  const first = await terminal.waitFor('> Image:')
  assert.match(first.join('\n'), /^\[number\] choose/m)
  await terminal.press('?', 'Enter')
  await terminal.waitFor(/a number +chooses that row[^]*> Image:$/m)
})

const nameOf = (day: string) => `debian-13-generic-amd64-202501${day}-daily-of-the-lab.img`

test('images that differ in their middle are distinguishable on 40 columns', async () => {
  await using fixture = await createWizardFixture({ [nameOf('01')]: 'x', [nameOf('02')]: 'x' })
  for (const columns of [80, 60, 40]) {
    await using terminal = await fixture.open({ columns })
    const screen = await terminal.waitFor('> Image:')
    const [one = '', two = ''] = screen.filter((line) => line.includes('debian'))
    assert.is.not(one.slice(7), two.slice(7))
    for (const line of screen) assert.ok(line.length < columns, line)
    // All of the name, as long as there is room for it.
    if (columns === 80) assert.ok(one.includes(nameOf('01')), one)
  }
})

const MIB = 2 ** 20

async function goToDisks(terminal: Terminal, disks: readonly string[]) {
  await terminal.waitFor(/debian-13-amd64.img [^]*> Image:/)
  await terminal.press('1', 'Enter')
  let screen: readonly string[] = []
  for (const disk of disks) screen = await terminal.waitFor(new RegExp(`${disk} [^]*> Disk:`))
  return screen
}

/** Ticks them by number and the space bar, and goes on. */
async function confirmAll(terminal: Terminal, disks: readonly string[]) {
  const screen = await goToDisks(terminal, disks)
  for (const disk of disks) {
    await terminal.press(numberOf(screen, disk), 'Space')
    await terminal.waitFor(new RegExp(`^[✔*][>-]? +\\d+ +${disk} `, 'm'))
  }
  await terminal.press('Enter')
  return await terminal.waitFor('ERASE AND FLASH')
}

const holdsImage = async ({ content }: WizardFixture, backing: string) =>
  (await readFile(backing)).subarray(0, content.length).equals(content)

const SCREENS: readonly (readonly [string, WizardOptions])[] = [
  ['80x25', {}],
  ['200x50', { columns: 200, rows: 50 }],
  ['80x24 on a serial line', { rows: 24, env: { TERM: 'vt220', LANG: 'C' } }],
  ['80x25 without colour', { env: { NO_COLOR: '1' } }],
]
for (const [name, options] of SCREENS) {
  test(`${name}: two disks, from the list to their ends`, async () => {
    await using fixture = await createWizardFixture()
    await using one = await createTarget()
    await using two = await createTarget()
    await using terminal = await fixture.open(options)
    const disks = [one.device, two.device]
    const asked = (await confirmAll(terminal, disks)).join('\n')
    assert.match(asked, /Everything on these 2 disks will be lost:/)
    for (const disk of disks) assert.match(asked, new RegExp(`^ +${disk}: .*33\\.6 MB`, 'm'))
    assert.match(asked, /^Disk: +2: \/dev\/loop\d+, \/dev\/loop\d+$/m)
    await terminal.press('y')
    const done = (await terminal.waitFor('? What next?')).join('\n')
    for (const disk of disks) {
      assert.match(done, new RegExp(`^[✔*] Done\\. Wrote .* to ${disk} in .*verified`, 'm'))
    }
    for (const { backing } of [one, two]) assert.ok(await holdsImage(fixture, backing))
    await terminal.press('q', 'Enter')
    await terminal.waitFor(`${EXITED}0`)
  })
}

test('none is written where one is another disk now; a line a disk while they are written', async () => {
  await using fixture = await createWizardFixture()
  await using good = await createTarget()
  await using bad = await createTarget()
  await using slow = await createFaultyDisk({ nbdkit: gated(32, 4 * MIB) })
  slow.setFlag(true)
  await using terminal = await fixture.open()
  await confirmAll(terminal, [good.device, bad.device, slow.device])
  // The disk is now as if it had been unplugged and another one been plugged in.
  await writeFile(bad.backing, Buffer.alloc(16 * MIB))
  await shell.require(['losetup', '--set-capacity', bad.device])
  await terminal.press('y')
  const refused = (await terminal.waitFor('? What next?')).join('\n')
  assert.match(refused, new RegExp(`✖ ${good.device}: .*is another disk now`))
  assert.match(refused, /Nothing was written\./)
  assert.not.ok(await holdsImage(fixture, good.backing))
  await terminal.press('b', 'Enter')
  const again = await terminal.waitFor(new RegExp(`${slow.device} [^]*> Disk:`))
  const numbers = [good, slow].map(({ device }) => numberOf(again, device))
  await terminal.press(numbers.join(','), 'Enter')
  await terminal.waitFor('ERASE AND FLASH')
  await terminal.press('y')
  // The slow one waits as long as its flag is set.
  await terminal.waitFor(new RegExp(`^${good.device}\\s+done$`, 'm'))
  const screen = (await terminal.screen()).join('\n')
  assert.match(screen, /^debian-13-amd64\.img -> 2 disks$/m)
  assert.match(screen, new RegExp(`^${slow.device}\\s+write +\\d+%`, 'm'))
  slow.setFlag(false)
  await terminal.waitFor('? What next?')
  await terminal.press('q', 'Enter')
  await terminal.waitFor(`${EXITED}0`)
})

test('on a terminal that cannot redraw, several numbers in one line', async () => {
  await using fixture = await createWizardFixture()
  await using one = await createTarget()
  await using two = await createTarget()
  await using terminal = await fixture.open({ env: { TERM: 'dumb' } })
  const screen = await goToDisks(terminal, [one.device, two.device])
  await terminal.press(`${numberOf(screen, one.device)} ${numberOf(screen, two.device)}`, 'Enter')
  await terminal.waitFor('ERASE AND FLASH')
  await terminal.press('y', 'Enter')
  await terminal.waitFor('Next:')
  const history = await terminal.history()
  for (const { device, backing } of [one, two]) {
    assert.match(history, new RegExp(`^${device} \\[done\\]`, 'm'))
    assert.ok(await holdsImage(fixture, backing))
  }
  await terminal.press('q', 'Enter')
  await terminal.waitFor(`${EXITED}0`)
})

test.run()
