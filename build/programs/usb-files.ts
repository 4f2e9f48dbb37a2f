/** Makes a stick as a folder of files, the same as a zip archive, and the page that fills a stick from it. */
import { chmod, cp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { $ } from 'zx/core'
import { makePlace } from '#build/app/lay.ts'
import { digestFile } from '#build/cache/digest.ts'
import { renderSums } from '#build/pack/sums.ts'
import { refuseSize, renderStickTexts, STICK_LOADERS, STICK_SUMS } from '#build/stick/files.ts'
import { TEXT, requireOptions } from '#build/steps/program-options.ts'
import { renderPage, type StickFile } from '#build/stick/page.ts'

interface Job {
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** The root below which the files of Debian's signed shim and GRUB lie. */
  readonly packages: string
  /** The folder with the parts of the page. */
  readonly page: string
  readonly version: string
  /** Seconds since 1970: the time of everything on the stick. */
  readonly epoch: number
  /** The folder that gets `flasher-stick/`, `flasher.zip` and `flasher-stick.html`. */
  readonly out: string
}

async function makeUsbFiles(job: Job): Promise<void> {
  const { version, epoch, out } = job
  const root = join(out, 'flasher-stick')
  await rm(root, { recursive: true, force: true })
  const files = await fillFolder(job, root)
  const paths = files.map(({ path }) => path)
  for (const path of paths) {
    await chmod(join(root, path), 0o644)
    await utimes(join(root, path), epoch, epoch)
  }
  await rm(join(out, 'flasher.zip'), { force: true })
  // Stored, with no fields of this host (-X), and refused from 4 GiB on (-fz-): the page reads nothing else.
  const zip = $({ quiet: true, cwd: root, env: { ...process.env, TZ: 'UTC' } })
  await zip`zip -q -0 -X -D -fz- ${resolve(out, 'flasher.zip')} ${paths}`
  await writeFile(join(out, 'flasher-stick.html'), await makePage(job.page, { version, files }))
}

/** Returns what lies there, sorted by path. */
async function fillFolder(job: Job, root: string): Promise<readonly StickFile[]> {
  const { kernel, initrd, squashfs, packages, version } = job
  // Another medium of the same version has another name: one must not start the other's root.
  const media = `${version}-${(await digestFile(squashfs)).slice(0, 12)}-files`
  const copied: Readonly<Record<string, string>> = {
    'live/vmlinuz': kernel,
    'live/initrd': initrd,
    'live/root.squashfs': squashfs,
    ...Object.fromEntries(
      Object.entries(STICK_LOADERS).map(([path, from]) => [path, join(packages, from)]),
    ),
  }
  const texts = renderStickTexts({ version, media })
  const paths = [...Object.keys(copied), ...Object.keys(texts)].toSorted()
  const files: StickFile[] = []
  for (const path of paths) {
    const place = await makePlace(root, path)
    const from = copied[path]
    if (from === undefined) await writeFile(place, texts[path] ?? '')
    else await cp(from, place)
    files.push(await look(root, path))
  }
  const sums = files.map(({ path, sha256 }) => ({ file: path, digest: sha256 }))
  await writeFile(join(root, STICK_SUMS), renderSums(sums))
  return [...files, await look(root, STICK_SUMS)]
}

async function look(root: string, path: string): Promise<StickFile> {
  const place = join(root, path)
  const { size } = await stat(place)
  const refusal = refuseSize(path, size)
  if (refusal !== null) throw new Error(refusal)
  return { path, bytes: size, sha256: await digestFile(place) }
}

async function makePage(folder: string, release: Parameters<typeof renderPage>[1]) {
  const read = (name: string) => readFile(join(folder, name), 'utf8')
  const [html, css] = [await read('page.html'), await read('page.css')]
  const scripts = [await read('zip.js'), await read('page.js')]
  return renderPage({ html, css, scripts }, release)
}

if (import.meta.main) {
  const { values: given } = parseArgs({
    options: {
      kernel: TEXT,
      initrd: TEXT,
      squashfs: TEXT,
      packages: TEXT,
      page: TEXT,
      version: TEXT,
      epoch: TEXT,
      out: TEXT,
    },
  })
  const values = requireOptions(given)
  await makeUsbFiles({ ...values, epoch: Number(values.epoch), out: resolve(values.out) })
}
