import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  findMount,
  parseMountinfo,
  parseOverlayFolders,
  parseSwaps,
} from '#engine/disk/rules/mount-map.ts'

const test = suite('mountinfo')
const first = (line: string) => parseMountinfo(line)[0]
const pointOf = (point: string) => first(`1 1 8:1 / ${point} rw - ext4 /dev/sda1 rw`)?.point

test('reads a line with no, one and many optional fields', () => {
  for (const optional of ['', 'shared:1 ', 'shared:5 master:2 propagate_from:9 unbindable ']) {
    const line = `27 1 254:0 /sub /mnt rw,relatime ${optional}- ext4 /dev/vda rw,discard`
    assert.equal(first(line), {
      id: 27,
      dev: '254:0',
      point: '/mnt',
      fstype: 'ext4',
      source: '/dev/vda',
      options: ['rw', 'discard'],
    })
  }
})

test('undoes octal escapes, byte by byte', () => {
  assert.is(pointOf('/a\\040b\\011c\\012d\\134e'), '/a b\tc\nd\\e')
  assert.is(pointOf('/\\303\\244'), '/ä')
  assert.is(pointOf('/\\134040'), '/\\040')
  assert.is(pointOf('/\\08x\\400\\'), '/\\08x\\400\\')
})

test('white space that the kernel leaves alone does not hide a mount', () => {
  for (const odd of ['\u00a0', '\u2028', '\r', '\v', '\f'])
    assert.is(pointOf(`/a${odd}b`), `/a${odd}b`)
})

test('a mount point called - is no end of the optional fields', () => {
  assert.is(first('1 1 8:1 / - rw - ext4 /dev/sda1 rw')?.fstype, 'ext4')
})

test('leaves out lines of another shape', () => {
  const good = '1 1 8:1 / / rw - ext4 /dev/sda1 rw'
  const text = ['', 'x', '1 1 8:1 / / rw', `x${good}`, '1 1 8 / / rw - a b c', good, ''].join('\n')
  assert.is(parseMountinfo(text).length, 1)
})

test('any text gives mounts or nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      parseMountinfo(text)
      parseSwaps(text)
      for (const mount of parseMountinfo(`1 1 8:1 / / rw - overlay o ${text}`))
        parseOverlayFolders(mount)
    }),
  )
})

test('swap: devices, not files', () => {
  const text = `Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/dm-2                               partition\t8388604\t\t0\t\t-2
/swap.img                               file\t\t2097148\t\t0\t\t-3
/dev/my\\040disk\\040(deleted)            partition\t1024\t\t0\t\t-4
`
  assert.equal(parseSwaps(text), ['/dev/dm-2', '/dev/my disk'])
  assert.equal(parseSwaps(''), [])
})

test('a path lies in the longest mount point, the last one mounted there', () => {
  const mounts = parseMountinfo(
    ['/', '/mnt', '/mnt/a', '/mnt/a']
      .map((point, n) => `${n} 1 8:${n} / ${point} rw - ext4 x rw`)
      .join('\n'),
  )
  const rows: readonly (readonly [string, number])[] = [
    ['/', 0],
    ['/mntx', 0],
    ['/mnt', 1],
    ['/mnt/b', 1],
    ['/mnt/a', 3],
    ['/mnt/a/b/c', 3],
  ]
  for (const [path, id] of rows) assert.is(findMount(mounts, path)?.id, id, path)
  assert.is(findMount([], '/'), null)
})

const folders = (options: string, type = 'overlay') =>
  parseMountinfo(`1 1 0:9 / / rw - ${type} none ${options}`).flatMap(parseOverlayFolders)

test('the folders of an overlay, however the kernel spells them', () => {
  assert.equal(folders('rw,lowerdir=/a:/b\\134:c::/d,upperdir=/u,workdir=/w'), [
    '/a',
    '/b:c',
    '/d',
    '/u',
    '/w',
  ])
  assert.equal(folders('ro,lowerdir+=/a,lowerdir+=/b:b,datadir+=/c'), ['/a', '/b:b', '/c'])
  assert.equal(folders('rw,lowerdir=/a', 'ext4'), [])
})

test.run()
