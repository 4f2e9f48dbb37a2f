/** Images that the builder puts on the stick as files: the rules of the page, and what is copied is read back. */
import { spawnSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempDisposableSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { VENTOY_FOLDER } from '#appliance/contract.ts'
import { IMAGE_ENDINGS } from '#appliance/disk-images.ts'
import { MAX_FAT_FILE_BYTES } from '#build/stick/files.ts'
import { addImages, findRefusal, refuseImage } from '#build/stick/images.ts'

const test = suite('images on the stick as files')
const folder = () => mkdtempDisposableSync(join(tmpdir(), 'flasher-stick-images-'))

test('an image is refused by its name and its size, as the page refuses it', () => {
  for (const ending of IMAGE_ENDINGS) assert.is(refuseImage(`a${ending}`, 1), null)
  assert.is(refuseImage('DISK.IMG', MAX_FAT_FILE_BYTES), null)
  assert.match(
    refuseImage('a.img', MAX_FAT_FILE_BYTES + 1) ?? '',
    /4\.0 GiB.*below 4 GiB.*\.img\.zst/,
  )
  assert.match(refuseImage('a.iso', 1) ?? '', 'no disk image by its name')
  assert.match(refuseImage('.a.img', 1) ?? '', 'no disk image by its name')
  assert.match(refuseImage('a:b.img', 1) ?? '', 'a character that FAT32 takes')
  assert.match(refuseImage('a.img', null) ?? '', 'is no file')
  const page = readFileSync('build/stick/page.js', 'utf8')
  const [, endings = ''] = /IMAGE_NAME = .*\\\.\((.+)\)\$\/i/.exec(page) ?? []
  assert.equal(
    endings
      .split('|')
      .map((ending) => `.${ending.replaceAll('\\', '')}`)
      .toSorted(),
    IMAGE_ENDINGS.toSorted(),
  )
})

test('what lies in the way of one is found before anything is built', async () => {
  using place = folder()
  const [small, large, other] = ['a.img', 'large.img', 'other/A.IMG'].map((name) =>
    join(place.path, name),
  )
  if (small === undefined || large === undefined || other === undefined) throw new Error('no names')
  mkdirSync(join(place.path, 'other'))
  for (const path of [small, large, other]) writeFileSync(path, 'image')
  assert.is(await findRefusal([small, large]), null)
  truncateSync(large, MAX_FAT_FILE_BYTES + 1)
  assert.match((await findRefusal([small, large])) ?? '', /^large\.img has 4\.0 GiB/)
  assert.is(await findRefusal([small, other]), 'two images are named A.IMG')
  const argv = ['build/images.ts', 'usb-files', '--image', large]
  const { status, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8' })
  assert.is(status, 2)
  assert.match(stderr, 'large.img has 4.0 GiB')
  const without = ['build/images.ts', 'usb-pc', '--image', small]
  const refused = spawnSync(process.execPath, without, { encoding: 'utf8' })
  assert.is(refused.status, 2)
  assert.match(refused.stderr, '--image is for usb-files')
})

test('an image lies in the folder that machines look at, whole', async () => {
  using place = folder()
  const image = join(place.path, 'a.img')
  const content = Buffer.alloc(2 ** 20, 7)
  writeFileSync(image, content)
  const stick = join(place.path, 'stick')
  const said: string[] = []
  await addImages([image], stick, (line) => said.push(line))
  assert.equal(readdirSync(join(stick, VENTOY_FOLDER)), ['a.img'])
  assert.ok(readFileSync(join(stick, VENTOY_FOLDER, 'a.img')).equals(content))
  assert.equal(said, [`${VENTOY_FOLDER}/a.img: copied and read back`])
})

for (const program of ['usb-files', 'iso', 'board', 'server-disk', 'initrd', 'signed-loaders']) {
  test(`${program} names the options that are missing`, () => {
    const argv = [`build/programs/${program}.ts`, '--out', '/nonexistent/out']
    const { status, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8' })
    assert.is(status, 1)
    assert.match(stderr, /these options are missing: --\w+( --\w+)+\n/)
    assert.not.match(stderr, '--out')
  })
}

test.run()
