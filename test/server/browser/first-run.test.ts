import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Browser, Page } from 'playwright-core'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { openBrowser } from '#test/support/browser/browser.ts'
import {
  openImages,
  openLab,
  startFreshLab,
  startTftpDaemon,
} from '#test/support/browser/fresh-lab.ts'
import { makeBytes } from '#test/support/collect.ts'
import { REPOSITORY, startReleaseSite } from '#test/support/http/release-site.ts'
import { partName, sha256 } from '#test/support/server/boot-folder.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'

const test = suite('the browser: the first run')
let browser: Browser
test.before(async () => {
  browser = await openBrowser()
})
test.after(async () => {
  await browser.close()
})

/** More than two parts of an upload. */
const IMAGE = makeBytes(17_000_000)
const SMALL = IMAGE.subarray(0, 100_000)

const MAC = '52:54:00:00:00:01'

const setup = (page: Page, title: string) =>
  page.locator('#readiness li', { has: page.getByRole('link', { name: title, exact: true }) })

/** The files of a live system and their checksums, as a person has them on the disk. */
function makeLiveSystem(version: string) {
  const files = TRIO.map((part) => ({
    name: partName(version, part),
    mimeType: 'application/octet-stream',
    buffer: Buffer.from(`${part} ${version}`),
  }))
  const list = files.map(({ name, buffer }) => `${sha256(buffer)}  ${name}\n`).join('')
  const sums = { name: partName(version, 'sha256'), mimeType: '', buffer: Buffer.from(list) }
  return { files, sums }
}

test('from a fresh install to everything ready, by the buttons alone', async () => {
  const tftp = '127.69.4.1'
  await using lab = await startFreshLab({ FLASHER_NETBOOT_TFTP_PROBE_HOST: tftp })
  await using opened = await openLab(browser, lab)
  const { page } = opened
  await setup(page, 'TFTP daemon').getByText('optional').waitFor()
  for (const title of ['Images', 'Live system', 'DHCP', 'TFTP daemon']) {
    assert.is(await setup(page, title).locator('.badge.done').count(), 0, title)
  }

  await page.getByRole('link', { name: 'Add an image' }).click()
  await page.getByText('No images yet').waitFor()
  await page.getByLabel('Image file').setInputFiles({
    name: 'debian-13.img.zst',
    mimeType: '',
    buffer: SMALL,
  })
  await page.getByRole('button', { name: 'Upload' }).click()
  await page.getByText('debian-13.img.zst was uploaded').waitFor()
  await page.getByRole('row', { name: /ready debian-13\.img\.zst/ }).waitFor()
  await page.getByRole('link', { name: 'Back to the dashboard' }).click()
  await setup(page, 'Images').getByText('1 image in the catalog').waitFor()
  assert.ok((await readFile(join(lab.folder, 'debian-13.img.zst'))).equals(SMALL))

  await page.locator('#readiness').getByRole('link', { name: 'Install a live system' }).click()
  const { files, sums } = makeLiveSystem('1.4.0')
  await page.getByLabel('Kernel, initrd and squashfs').setInputFiles([...files, sums])
  await page.getByRole('button', { name: 'Upload' }).click()
  await page.getByText('4 files were uploaded').waitFor()
  await page.locator('#artifacts').getByText('active').waitFor()

  await page.getByRole('link', { name: 'Dashboard' }).click()
  await setup(page, 'Live system').getByText('Machines boot 1.4.0').waitFor()
  await setup(page, 'DHCP').getByRole('link', { name: 'Set up DHCP' }).click()
  await page.waitForURL('**/ui/dhcp')
  await page.getByRole('link', { name: 'Dashboard' }).click()
  // What the operator's DHCP server brings about.
  assert.is((await fetch(`${lab.url}/pxe/${MAC}`)).status, 200)
  await using _daemon = await startTftpDaemon(tftp)
  await setup(page, 'DHCP').getByText('ready').waitFor()
  await page.getByText('Ready to boot machines').waitFor()

  // The cache says which machines use the image.
  const [image] = await (await fetch(`${lab.url}/images`)).json()
  const bound = { bty_image_ref: Object(image).ref }
  const answer = await page.request.put(`/machines/${MAC}`, { data: bound })
  assert.is(answer.status(), 200)
  await openImages(page, lab)
  await page.getByRole('link', { name: '1 machine', exact: true }).click()
  await page.getByRole('link', { name: MAC }).waitFor()
  assert.equal(opened.complaints, [])
})

test('an upload goes on where the death of the cache left it', async () => {
  await using lab = await startFreshLab()
  await using opened = await openLab(browser, lab)
  const { page } = opened
  const path = lab.at('big.img')
  await writeFile(path, IMAGE)
  const ranges: string[] = []
  await page.route('**/uploads/*', async (route) => {
    const range = route.request().headers()['content-range']
    if (range === undefined) return route.continue()
    ranges.push(range)
    // The first part is there; nobody answers the second one.
    if (ranges.length === 2) await lab.killCache()
    await route.continue()
  })
  await openImages(page, lab)
  await page.getByLabel('Image file').setInputFiles(path)
  await page.getByRole('button', { name: 'Upload' }).click()
  await page.getByText('The connection was lost').waitFor()
  await lab.restartCache()
  await page.getByText('big.img was uploaded').waitFor()
  const [first, second, ...rest] = ranges.map((range) => range.split('/')[0])
  assert.equal([first, second], ['bytes 0-8388607', 'bytes 8388608-16777215'])
  assert.ok(rest.length > 0 && !rest.includes(first))
  assert.ok((await readFile(join(lab.folder, 'big.img'))).equals(IMAGE))
  const digest = createHash('sha256').update(IMAGE).digest('hex')
  assert.is(await page.locator('#images details code').textContent(), digest)
})

test('a closed page leaves an unfinished upload, which the same file continues', async () => {
  await using lab = await startFreshLab()
  await using opened = await openLab(browser, lab)
  const path = lab.at('big.img')
  await writeFile(path, IMAGE)
  const first = await opened.context.newPage()
  let parts = 0
  const { promise: reached, resolve } = Promise.withResolvers<void>()
  await first.route('**/uploads/*', async (route) => {
    parts += 1
    if (parts < 2) return route.continue()
    resolve()
    return undefined // It is cut off.
  })
  await openImages(first, lab)
  await first.getByLabel('Image file').setInputFiles(path)
  await first.getByRole('button', { name: 'Upload' }).click()
  await reached
  await first.close()

  const { page } = opened
  const ranges: string[] = []
  page.on('request', (request) => {
    const range = request.headers()['content-range']
    if (range !== undefined) ranges.push(range)
  })
  await openImages(page, lab)
  await page.getByLabel('Image file').setInputFiles(path)
  await page.getByRole('button', { name: 'Upload' }).click()
  await page.getByText('big.img was uploaded').waitFor()
  // What came of the part that was cut off stays, too.
  const from = Number(/^bytes (\d+)-/.exec(ranges[0] ?? '')?.[1])
  assert.ok(from >= 8_388_608, `it continued at ${from}`)
  assert.ok((await readFile(join(lab.folder, 'big.img'))).equals(IMAGE))
})

test('what cannot be taken is said in a sentence, and hostile names stay text', async () => {
  await using lab = await startFreshLab()
  await using opened = await openLab(browser, lab)
  const { page } = opened
  await openImages(page, lab)
  const evil = '"><img src=x onerror=alert(1)>${7*7}.img'
  await writeFile(join(lab.folder, 'here.img'), 'theirs\0')
  await page.getByRole('row', { name: /ready here\.img/ }).waitFor()
  const upload = async (name: string) => {
    await page.getByLabel('Image file').setInputFiles({ name, mimeType: '', buffer: SMALL })
    await page.getByRole('button', { name: 'Upload' }).click()
  }
  await upload('notes.txt')
  await page.getByText('notes.txt must end in .img').waitFor()
  await upload('here.img')
  await page.getByText('An image named here.img is in the cache already.').waitFor()
  await page.getByText('Checksum', { exact: true }).click()
  await page.locator('[name="upload-sha256"]').fill('0'.repeat(64))
  await upload('wrong.img')
  await page.getByText(/wrong\.img has the SHA-256 .* but 0{64} was expected/).waitFor()
  await page.locator('[name="upload-sha256"]').fill('')
  await upload(evil)
  await page.getByText(`${evil} was uploaded`).waitFor()
  await page.getByRole('row').getByText(evil).waitFor()
  assert.is(await page.locator('img').count(), 0)
  assert.is(await readFile(join(lab.folder, 'here.img'), 'utf8'), 'theirs\0')
  assert.equal(opened.complaints, [])
})

test('a live system is fetched from the address that is typed there', async () => {
  await using site = await startReleaseSite()
  await using lab = await startFreshLab()
  await using opened = await openLab(browser, lab)
  const { page } = opened
  await page.goto('/ui/netboot#install')
  await page.getByLabel('Address of the project').fill('no address')
  await page.getByRole('button', { name: 'Fetch release' }).click()
  await page.getByRole('alert').getByText('Repository: Enter the repository').waitFor()
  await page.getByLabel('Repository').fill(REPOSITORY)
  await page.getByRole('button', { name: 'Fetch release' }).click()
  await page.getByRole('alert').getByText('Release site').waitFor()
  assert.is(await page.getByLabel('Release site').inputValue(), 'no address')
  await page.getByLabel('Release site').fill(`${site.origin}/${REPOSITORY}`)
  await page.getByLabel('Repository').fill('')
  await page.locator('#install').getByLabel('Release', { exact: true }).fill('v1.2.3')
  await page.getByRole('button', { name: 'Fetch release' }).click()
  await page.locator('#artifacts').getByText('active').waitFor()
  assert.is(await page.getByLabel('Release site').inputValue(), site.origin)
  assert.is(await page.getByLabel('Repository').inputValue(), REPOSITORY)
})

test('a wrong file of a live system is refused by its checksum, and what is missing is named', async () => {
  await using lab = await startFreshLab()
  await using opened = await openLab(browser, lab)
  const { page } = opened
  const { files, sums } = makeLiveSystem('1.4.0')
  const [kernel, ...others] = files
  await page.goto('/ui/netboot')
  const upload = async (...chosen: readonly (typeof sums)[]) => {
    await page.getByLabel('Kernel, initrd and squashfs').setInputFiles(chosen)
    await page.getByRole('button', { name: 'Upload' }).click()
  }
  await upload(sums, ...others)
  await page.getByText('3 files were uploaded').waitFor()
  await page.getByText(`Missing: ${kernel?.name}`).waitFor()
  await upload({ ...sums, name: kernel?.name ?? '', buffer: Buffer.from('another kernel') })
  await page.getByText('does not match its checksum').waitFor()
  await page.getByText(`Missing: ${kernel?.name}`).waitFor()
})

test('without a script an image is added by its address, and the page says how to upload', async () => {
  await using source = await startHostileServer((_, response) => {
    response.end(SMALL)
  })
  await using lab = await startFreshLab()
  await using opened = await openLab(browser, lab, { javaScriptEnabled: false })
  const { page } = opened
  await openImages(page, lab)
  await page.getByText('Uploading here needs JavaScript').waitFor()
  await page.getByLabel('URL').fill(`${source.origin}/plain.img`)
  await page.getByRole('button', { name: 'Add and download' }).click()
  await page.getByText(/Download(ed|ing) plain\.img\./).waitFor()
  const ready = page.getByRole('row', { name: /ready plain\.img/ })
  for (let tries = 0; tries < 200 && (await ready.count()) === 0; tries += 1) await page.reload()
  await page.getByRole('link', { name: 'Assign it to machines' }).click()
  await page.waitForURL(`${lab.url}/ui/machines`)
})

test('a silent cache, or none, has a page with the field that connects one', async () => {
  await using lab = await startFreshLab({ FLASHER_WITHCACHE_URL: '' })
  await using opened = await openLab(browser, lab)
  const { page } = opened
  await page.getByRole('link', { name: 'Connect a cache' }).click()
  const field = page.getByLabel('Address of the cache service')
  await field.fill('ftp://nowhere')
  await page.getByRole('button', { name: 'Connect' }).click()
  await page.locator('#url-error').waitFor()
  await field.fill('http://127.0.0.1:9')
  await page.getByRole('button', { name: 'Connect' }).click()
  await page.getByText('The cache service is unavailable').waitFor()
  await field.fill(lab.cacheUrl)
  await page.getByRole('button', { name: 'Connect' }).click()
  await page.getByRole('link', { name: 'Open the images' }).click()
  await page.waitForURL(`${lab.cacheUrl}/ui/dashboard`)
})

test('the button that uploads waits for the script that does it', async () => {
  await using lab = await startFreshLab()
  await using opened = await openLab(browser, lab)
  const { page } = opened
  await page.route('**/uploads.js*', (route) => route.abort())
  await page.getByRole('link', { name: 'Add an image' }).click()
  await page.getByText('No images yet').waitFor()
  assert.ok(await page.getByRole('button', { name: 'Upload' }).isDisabled())
})

test.run()
