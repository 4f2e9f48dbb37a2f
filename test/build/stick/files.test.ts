/** The stick as files: what firmware, GRUB and the initrd look for, and the same as an archive that other programs read. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempDisposableSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { VENTOY_FOLDER } from '#appliance/contract.ts'
import { MAX_FAT_FILE_BYTES, refuseSize } from '#build/stick/files.ts'
import { renderPage } from '#build/stick/page.ts'
import { buildStick } from '#test/support/boot/stick-parts.ts'

const test = suite('stick as files')

const listFiles = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(folder, path)).isFile())
    .toSorted()

/** As Python, which has nothing to do with ours, lists and checks an archive. */
const READ_ZIP = `
import json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    assert archive.testzip() is None
    rows = [[i.filename, i.file_size, i.compress_type, i.external_attr >> 16, list(i.date_time)] for i in archive.infolist()]
    archive.extractall(sys.argv[2])
print(json.dumps(rows))
`

test('GRUB, kernel and root are found by files, and no name begins with a dot', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'flasher-stick-'))
  const { folder } = buildStick(place.path)
  const paths = listFiles(folder)
  assert.equal(
    paths.filter((path) => path.split('/').some((name) => name.startsWith('.'))),
    [],
  )
  for (const name of ['BOOTX64.EFI', 'grubx64.efi', 'mmx64.efi']) {
    assert.ok(paths.includes(`EFI/BOOT/${name}`), name)
  }
  assert.ok(existsSync(join(folder, VENTOY_FOLDER)))
  const read = (path: string) => readFileSync(join(folder, path), 'utf8')
  const early = read('boot/grub/x86_64-efi/grub.cfg')
  const mark = /^search --file --set=root \/(\S+)$/m.exec(early)?.[1] ?? ''
  assert.ok(paths.includes(mark), early)
  const menu = read('boot/grub/grub.cfg')
  assert.match(menu, ` flasher.media=${read('live/id').trim()} flasher.verify=1 `)
  assert.not.match(early + menu, /label|uuid/i)
  for (const path of ['vmlinuz', 'initrd']) {
    assert.match(menu, new RegExp(`^  (linux|initrd) /live/${path}\\b`, 'm'))
  }
})

test('the list of checksums is of all files but itself', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'flasher-stick-'))
  const { folder } = buildStick(place.path)
  execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: folder })
  const lines = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trim().split('\n')
  assert.is(lines.length, listFiles(folder).length - 1)
})

test('the archive has the same files, stored, with the time of the commit', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'flasher-stick-'))
  const { folder, zip } = buildStick(place.path)
  const unpacked = join(place.path, 'unpacked')
  const said = execFileSync('python3', ['-c', READ_ZIP, zip, unpacked], { encoding: 'utf8' })
  const rows: readonly (readonly [string, number, number, number, readonly number[]])[] =
    JSON.parse(said)
  assert.equal(rows.map(([path]) => path).toSorted(), listFiles(folder))
  for (const [path, bytes, method, mode, date] of rows) {
    assert.equal([bytes, method, mode], [statSync(join(folder, path)).size, 0, 0o100_644], path)
    assert.equal(date, [2025, 10, 9, 8, 53, 20])
    const [one, other] = [folder, unpacked].map((top) => readFileSync(join(top, path)))
    assert.ok(one?.equals(other ?? Buffer.alloc(0)), path)
  }
})

test('the same content makes the same bytes', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'flasher-stick-'))
  const [one, another] = ['one', 'another'].map((name) => buildStick(join(place.path, name)))
  for (const what of ['zip', 'page'] as const) {
    const [first, second] = [one, another].map((made) => readFileSync(made?.[what] ?? ''))
    assert.ok(first?.equals(second ?? Buffer.alloc(0)), what)
  }
})

test('a file that FAT32 cannot hold is refused with its name and size', () => {
  assert.is(refuseSize('live/root.squashfs', MAX_FAT_FILE_BYTES), null)
  assert.match(
    refuseSize('live/root.squashfs', MAX_FAT_FILE_BYTES + 1) ?? '',
    /^live\/root\.squashfs has 4\.0 GiB: .* below 4 GiB$/,
  )
})

test('the page is one file whose policy knows its own script alone', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'flasher-stick-'))
  const html = readFileSync(buildStick(place.path).page, 'utf8')
  assert.match(html, "default-src 'none'; script-src 'sha256-")
  assert.not.match(html, /https?:\/\/|<link|\bsrc=|^import |^export /m)
  const parts = { html: '<p>@version@</p><!-- @scripts@ -->', css: '', scripts: [] }
  const files = [{ path: '</script>', bytes: 1, sha256: 'x' }]
  assert.is(renderPage(parts, { version: '1', files }).split('</script>').length, 3)
  assert.throws(() => renderPage({ ...parts, html: '@other@' }, { version: '1', files }), /@other@/)
})

test.run()
