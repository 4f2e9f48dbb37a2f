/** Builds the container images: `containers.ts --arch A --version V --epoch S --level N --base DIR --tree DIR… --out FILE`. */
import {
  chmod,
  chown,
  lchown,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { $ } from 'zx/core'
import { CONTAINER_STATE, CONTAINER_USER } from '#appliance/containers.ts'
import { layFolder } from '#build/app/lay.ts'
import { digestFile } from '#build/cache/digest.ts'
import { renderLayout, type Layer } from '#build/containers/layout.ts'

const text = { type: 'string', default: '' } as const
const list = { type: 'string', multiple: true, default: [] as string[] } as const
const { arch, version, epoch, level, base, tree, out } = parseArgs({
  options: {
    arch: text,
    version: text,
    epoch: text,
    level: text,
    base: text,
    tree: list,
    out: text,
  },
}).values

const run = $({ quiet: true, env: { ...process.env, TZ: 'UTC', LC_ALL: 'C.UTF-8' } })
const scratch = await mkdtemp(`${out}.`)
try {
  const place = join(scratch, 'layout')
  const blobs = join(place, 'blobs/sha256')
  await mkdir(blobs, { recursive: true })
  const own = await makeOwn(join(scratch, 'own'))
  const layers: Layer[] = []
  for (const folder of [base, own]) layers.push(await pack(folder, blobs))
  const layout = renderLayout({ version, epoch: Number(epoch), arch, layers })
  for (const blob of layout.blobs) await writeFile(join(blobs, blob.digest), blob.text)
  await writeFile(join(place, 'index.json'), layout.index)
  await writeFile(join(place, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  await archive(place, `${out}.part`)
  await rename(`${out}.part`, out)
} finally {
  await rm(scratch, { recursive: true })
}

/** Our programs and files, the account, and the folder of the state. */
async function makeOwn(folder: string): Promise<string> {
  for (const each of tree) await layFolder(each, folder)
  // Units and their settings mean nothing here.
  for (const path of ['usr/lib/systemd', 'usr/lib/sysusers.d', 'etc']) {
    await rm(join(folder, path), { recursive: true, force: true })
  }
  await mkdir(join(folder, 'etc'))
  for (const [name, line] of [
    [
      'passwd',
      `flasher:x:${CONTAINER_USER}:${CONTAINER_USER}::${CONTAINER_STATE}:/usr/sbin/nologin\n`,
    ],
    ['group', `flasher:x:${CONTAINER_USER}:\n`],
  ] as const) {
    const known = await readFile(join(base, 'etc', name), 'utf8')
    await writeFile(join(folder, 'etc', name), known + line)
  }
  const state = join(folder, CONTAINER_STATE)
  await mkdir(state, { recursive: true })
  for (const path of await readdir(folder, { recursive: true }))
    await lchown(join(folder, path), 0, 0)
  await chown(state, CONTAINER_USER, CONTAINER_USER)
  await chmod(state, 0o700)
  return folder
}

async function pack(folder: string, blobs: string): Promise<Layer> {
  const plain = join(scratch, 'layer.tar')
  const packed = join(scratch, 'layer.tar.zst')
  await archive(folder, plain)
  // The number of threads is fixed: it decides bytes.
  await run`zstd -q -f -T2 -${level} -o ${packed} ${plain}`
  const digest = await digestFile(packed)
  const layer = { digest, plainDigest: await digestFile(plain), bytes: (await stat(packed)).size }
  await rename(packed, join(blobs, digest))
  await rm(plain)
  return layer
}

/** The same bytes for the same files. */
async function archive(folder: string, file: string): Promise<void> {
  const how = ['--sort=name', '--numeric-owner', '--format=posix', `--mtime=@${epoch}`]
  const without = ['--pax-option=delete=atime,delete=ctime', '--xattrs-exclude=*']
  await run`tar ${how} ${without} -C ${folder} -cf ${file} .`
}
