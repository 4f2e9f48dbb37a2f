/** The page that fills a stick from flasher.zip, in Chromium: what it writes, what it asks, and what it refuses. */
import {
  closeSync,
  copyFileSync,
  ftruncateSync,
  mkdtempDisposableSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { buildStick, type StickBuild } from '#test/support/boot/stick-parts.ts'
import { addAxe, listViolations } from '#test/support/browser/axe.ts'
import { logIn, openBrowser, openContext, startSite } from '#test/support/browser/browser.ts'
import { openStickPage, saveStick, serveStickPage } from '#test/support/browser/stick-page.ts'

const test = suite('page that fills a stick')
const place = mkdtempDisposableSync(join(tmpdir(), 'flasher-stick-page-'))
const START = 'Choose the stick and copy'
let browser: Browser
let stick: StickBuild

test.before(async () => {
  stick = buildStick(place.path)
  browser = await openBrowser()
})

test.after(async () => {
  await browser.close()
  place.remove()
})

interface Open {
  readonly context: BrowserContext
  readonly page: Page
  /** What a page must not do. */
  readonly complaints: readonly string[]
  /** The files on the stand-in of a stick, by their paths. */
  read(): Promise<ReadonlyMap<string, Buffer>>
}

/** One page with a stick of its own. */
async function withPage(work: (open: Open) => Promise<void>): Promise<void> {
  using saved = mkdtempDisposableSync(join(tmpdir(), 'flasher-stick-saved-'))
  await using site = await serveStickPage(stick.page, saved.path)
  const context = await browser.newContext()
  context.setDefaultTimeout(10_000)
  try {
    await addAxe(context)
    const complaints: string[] = []
    context.on('weberror', (error) => complaints.push(error.error().message))
    const page = await openStickPage(context, site)
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text())
    })
    page.on('request', ({ url }) => complaints.push(`asks for ${url()}`))
    const read = async () => {
      const paths = await saveStick(context, site)
      return new Map(paths.map((path) => [path, readFileSync(join(saved.path, path))]))
    }
    await work({ context, page, complaints, read })
    assert.equal(complaints, [])
  } finally {
    await context.close()
  }
}

const choose = (page: Page, zip: string) => page.getByLabel('flasher.zip of').setInputFiles(zip)
const start = (page: Page) => page.getByRole('button', { name: START }).click()
const outcome = (page: Page, kind: string) =>
  page.locator(`#outcome[data-kind="${kind}"]`).innerText()

const listStick = () =>
  readdirSync(stick.folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(stick.folder, path)).isFile())
    .toSorted()

test('the stick gets every byte of the archive, and images into their folder', async () => {
  await withPage(async ({ page, read }) => {
    const image = join(place.path, 'größe 1.img')
    writeFileSync(image, 'an image')
    await choose(page, stick.zip)
    await page.getByLabel('Disk images').setInputFiles(image)
    assert.equal(await listViolations(page), [])
    await start(page)
    assert.match(await outcome(page, 'done'), /^Done: \d+ files, 9\.4 MB, all read back and equal/)
    const found = await read()
    assert.equal([...found.keys()], [...listStick(), 'flasher-images/größe 1.img'].toSorted())
    for (const path of listStick()) {
      assert.ok(found.get(path)?.equals(readFileSync(join(stick.folder, path))), path)
    }
    assert.is(found.get('flasher-images/größe 1.img')?.toString(), 'an image')
  })
})

test('a folder that is not empty is left alone, unless the person agrees', async () => {
  await withPage(async ({ page, read }) => {
    await page.evaluate(`(async () => {
      const folder = await window.showDirectoryPicker()
      const file = await folder.getFileHandle('thesis.txt', { create: true })
      const stream = await file.createWritable()
      await stream.write('mine')
      await stream.close()
      await folder.getDirectoryHandle('System Volume Information', { create: true })
      await folder.getFileHandle('.DS_Store', { create: true })
    })()`)
    await choose(page, stick.zip)
    await start(page)
    await page.getByText('stick has thesis.txt.').waitFor()
    assert.equal(await listViolations(page), [])
    await page.getByRole('button', { name: 'Do not copy' }).click()
    assert.is(await outcome(page, 'cancelled'), 'Nothing was copied.')
    assert.equal([...(await read()).keys()], ['.DS_Store', 'thesis.txt'])
    await start(page)
    await page.getByRole('button', { name: 'Copy anyway' }).click()
    await outcome(page, 'done')
    const found = await read()
    assert.is(found.get('thesis.txt')?.toString(), 'mine')
    assert.is(found.size, listStick().length + 2)
  })
})

test('a copy that is cancelled says that the stick is incomplete, and nothing on it starts', async () => {
  await withPage(async ({ page, read }) => {
    // The first file that is closed presses the button.
    await page.evaluate(`(() => {
      const { close } = FileSystemWritableFileStream.prototype
      FileSystemWritableFileStream.prototype.close = async function () {
        await close.call(this)
        document.getElementById('cancel').click()
      }
    })()`)
    await choose(page, stick.zip)
    await start(page)
    assert.is(await outcome(page, 'failed'), 'Cancelled. The stick is incomplete: start again.')
    assert.not.ok([...(await read()).keys()].some((path) => path.startsWith('EFI/')))
  })
})

test('bytes that the stick returns otherwise are found', async () => {
  await withPage(async ({ page }) => {
    await page.evaluate(`(() => {
      const { getFile } = FileSystemFileHandle.prototype
      FileSystemFileHandle.prototype.getFile = async function () {
        const file = await getFile.call(this)
        if (this.name !== 'root.squashfs') return file
        const bytes = new Uint8Array(await file.arrayBuffer())
        bytes[5_000_000] ^= 1
        return new File([bytes], file.name)
      }
    })()`)
    await choose(page, stick.zip)
    await start(page)
    assert.match(await outcome(page, 'failed'), /^live\/root\.squashfs is different on the stick\./)
  })
})

test('a stick that was filled before starts nothing until all of it was replaced and read back', async () => {
  await withPage(async ({ page, read }) => {
    await choose(page, stick.zip)
    await start(page)
    await outcome(page, 'done')
    assert.ok((await read()).has('EFI/BOOT/BOOTX64.EFI'))
    await page.evaluate(`(() => {
      const { getFile } = FileSystemFileHandle.prototype
      FileSystemFileHandle.prototype.getFile = async function () {
        const file = await getFile.call(this)
        return this.name === 'initrd' ? new File([new Uint8Array(file.size)], file.name) : file
      }
    })()`)
    await start(page)
    await page.getByRole('button', { name: 'Copy anyway' }).click()
    assert.match(await outcome(page, 'failed'), /^live\/initrd is different .* use another one\.$/)
    const found = await read()
    assert.not.ok(found.has('EFI/BOOT/BOOTX64.EFI'))
    assert.ok(found.has('EFI/BOOT/grubx64.efi'))
  })
})

test('whoever closes the page in the middle of a copy is asked first', async () => {
  await withPage(async ({ page }) => {
    // The first file never ends, and the page is as fast as can be.
    await page.evaluate(`(() => {
      performance.now = () => 0
      FileSystemWritableFileStream.prototype.close = () => new Promise(() => {})
    })()`)
    await choose(page, stick.zip)
    await start(page)
    await page.getByText(/^Writing /).waitFor({ timeout: 60_000 })
    const asked = page.waitForEvent('dialog')
    await page.close({ runBeforeUnload: true })
    const dialog = await asked
    assert.is(dialog.type(), 'beforeunload')
    await dialog.accept()
  })
})

/** What is done to the archive, and what the page says then. */
const HOSTILE: readonly (readonly [string, (zip: Buffer) => Buffer, RegExp])[] = [
  ['a page', () => Buffer.from('<!doctype html>'), /is not a zip archive/],
  ['one that was cut off', (zip) => zip.subarray(0, -30), /is not a zip archive/],
  ['one without its beginning', (zip) => zip.subarray(1000), /damaged/],
  [
    'a path upwards',
    (zip) => rename(zip, 'live/id', '../e/id'),
    /would lie outside .*: \.\.\/e\/id$/,
  ],
  ['a path from the top', (zip) => rename(zip, 'live/id', '/ive/id'), /would lie outside/],
  ['a path of Windows', (zip) => rename(zip, 'live/id', String.raw`live\id`), /would lie outside/],
  [
    'another name',
    (zip) => rename(zip, 'live/id', 'live/ie'),
    /is not the flasher\.zip of version/,
  ],
  [
    'a name twice, for FAT',
    (zip) => rename(zip, 'EFI/BOOT/grubx64.efi', 'EFI/BOOT/bootx64.efi'),
    /has a file twice/,
  ],
  [
    'files that overlap',
    (zip) => change(change(zip, 20, 200, 'first'), 24, 200, 'first'),
    /has files that overlap/,
  ],
  ['two headers that differ', (zip) => rename(zip, 'live/id', 'live/ie', 1), /damaged at live/],
  [
    'a bit of the root',
    (zip) => flip(zip, 5_000_000),
    /live\/root\.squashfs has the wrong checksum/,
  ],
  ['a larger size', (zip) => change(zip, 20, 0x7fff_ffff), /packed in a way|damaged/],
  ['an offset beyond the end', (zip) => change(zip, 42, 0x7fff_ffff), /damaged/],
  ['an offset of another file', (zip) => change(zip, 42, 0), /damaged at/],
  ['packed entries', (zip) => change(zip, 8, 0x0008_0800), /packed in a way/],
  ['encrypted entries', (zip) => change(zip, 6, 0x0801_0014), /packed in a way/],
  ['a list without an end', (zip) => changeEnd(zip, 12, 0x7fff_ffff), /more files|cut off/],
  ['65535 entries', (zip) => changeEnd(zip, 8, 0xffff_ffff), /lists more files/],
]

function rename(zip: Buffer, from: string, to: string, most = 2): Buffer {
  assert.is(from.length, to.length)
  const changed = Buffer.from(zip)
  for (let [at, count] = [zip.indexOf(from), 0]; at >= 0 && count < most; count += 1) {
    // The menu names some of them, too: only headers are changed.
    if (isHeader(zip, at)) changed.write(to, at)
    else count -= 1
    at = zip.indexOf(from, at + 1)
  }
  return changed
}

const isHeader = (zip: Buffer, name: number) =>
  [
    [30, 0x0403_4b50],
    [46, 0x0201_4b50],
  ].some(([bytes = 0, sign]) => name >= bytes && zip.readUInt32LE(name - bytes) === sign)

function flip(zip: Buffer, at: number): Buffer {
  const changed = Buffer.from(zip)
  changed[at] = (changed[at] ?? 0) ^ 1
  return changed
}

/** A field of the first or of the last entry of the archive's list. */
function change(zip: Buffer, field: number, value: number, which: 'first' | 'last' = 'last') {
  const sign = Buffer.from('PK\u0001\u0002')
  const changed = Buffer.from(zip)
  const entry = which === 'first' ? zip.indexOf(sign) : zip.lastIndexOf(sign)
  changed.writeUInt32LE(value, entry + field)
  return changed
}

function changeEnd(zip: Buffer, field: number, value: number): Buffer {
  const changed = Buffer.from(zip)
  changed.writeUInt32LE(value, zip.length - 22 + field)
  return changed
}

test('an archive that is not the release is refused before anything is written', async () => {
  await withPage(async ({ page, read }) => {
    const whole = readFileSync(stick.zip)
    const hostile = join(place.path, 'hostile.zip')
    for (const [what, make, said] of HOSTILE) {
      writeFileSync(hostile, make(whole))
      await choose(page, hostile)
      await page.locator('#outcome').evaluate((element) => delete element.dataset['kind'])
      await start(page)
      assert.match(await outcome(page, 'failed'), said, what)
    }
    assert.is((await read()).size, 0)
  })
})

test('an image that FAT32 cannot hold, and a file that is no image, are refused in words', async () => {
  await withPage(async ({ page, read }) => {
    const [large, text] = [join(place.path, 'large.img'), join(place.path, 'notes.txt')]
    const file = openSync(large, 'w')
    ftruncateSync(file, 2 ** 32)
    closeSync(file)
    writeFileSync(text, 'notes')
    await choose(page, stick.zip)
    await page.getByLabel('Disk images').setInputFiles(large)
    await start(page)
    assert.match(await outcome(page, 'failed'), /^large\.img has 4\.3 GB\. .* below 4 GiB/)
    await page.getByLabel('Disk images').setInputFiles(text)
    await page.locator('#outcome').evaluate((element) => delete element.dataset['kind'])
    await start(page)
    assert.match(await outcome(page, 'failed'), /^notes\.txt is no disk image by its name/)
    assert.is((await read()).size, 0)
  })
})

test('from plain HTTP the page offers itself as a file, which works when it is opened from disk', async () => {
  const context = await browser.newContext()
  context.setDefaultTimeout(10_000)
  try {
    const page = await context.newPage()
    // Any name but localhost is plain HTTP to a browser, whatever it resolves to.
    await page.route('http://lab.test/', (route) =>
      route.fulfill({ contentType: 'text/html', body: readFileSync(stick.page) }),
    )
    await page.goto('http://lab.test/')
    assert.ok(await page.getByRole('button', { name: START }).isDisabled())
    await page.getByText('do not let a page from plain HTTP write files').waitFor()
    const link = page.getByRole('link', { name: 'Save this page' })
    assert.is(await link.getAttribute('download'), 'flasher-stick.html')
    await page.goto(pathToFileURL(stick.page).href)
    assert.equal(await page.evaluate('[isSecureContext, typeof window.showDirectoryPicker]'), [
      true,
      'function',
    ])
    assert.ok(await page.getByRole('button', { name: START }).isEnabled())
    // The dialog opens, and a browser without a screen closes it; where it is forbidden, a SecurityError says so.
    const said = 'window.showDirectoryPicker().catch(({ name }) => name)'
    assert.is(await page.evaluate(said), 'AbortError')
    assert.ok(await page.locator('#elsewhere').isHidden())
  } finally {
    await context.close()
  }
})

test('a server with both files in its boot directory offers them under Network boot, as downloads', async () => {
  await using site = await startSite()
  await using opened = await openContext(browser, site)
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto('/ui/netboot')
  const title = page.getByRole('heading', { name: 'Make a USB stick' })
  assert.is(await title.count(), 0)
  for (const path of [stick.page, stick.zip]) {
    copyFileSync(path, join(site.home.at('state/boot'), basename(path)))
  }
  await page.reload()
  await title.waitFor()
  for (const path of [stick.page, stick.zip]) {
    const name = basename(path)
    const sentence = page.getByText(/^Save flasher-stick\.html and flasher\.zip,/)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      sentence.getByRole('link', { name, exact: true }).click(),
    ])
    assert.is(download.suggestedFilename(), name)
    assert.ok(readFileSync(await download.path()).equals(readFileSync(path)), name)
  }
  assert.equal(opened.complaints, [])
})

test.run()
