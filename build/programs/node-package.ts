/** Fetches the Node of another architecture from npm, as the lock file has it: `node-package.ts --package NAME --cache DIR --out DIR`. */
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { $ } from 'zx/core'
import { parseLocked, readIntegrity, type LockedPackage } from '#build/app/lock.ts'

const text = { type: 'string', default: '' } as const
const { values } = parseArgs({ options: { package: text, cache: text, out: text } })
const { package: name, cache, out } = values

const locked = parseLocked(await readFile('pnpm-lock.yaml', 'utf8'), name)
const archive = join(cache, `${name}-${locked.version}.tgz`)
if ((await readIntegrity(archive)) !== locked.integrity) await fetchPackage(locked)
const folder = join(out, 'node_modules', name)
await mkdir(folder, { recursive: true })
// Headers and manual pages are not needed.
const parts = ['package/package.json', 'package/bin/node']
const place = ['-C', folder, '--strip-components=1', '--no-same-owner']
await $({ quiet: true })`tar -xzf ${archive} ${place} ${parts}`

/** The package is kept only when it is what the lock file says. */
async function fetchPackage({ version, integrity }: LockedPackage): Promise<void> {
  await mkdir(cache, { recursive: true })
  const scratch = await mkdtemp(join(cache, 'fetching-'))
  try {
    const run = $({ cwd: scratch, quiet: true })
    const { stdout } = await run`npm pack --silent ${`${name}@${version}`}`
    const fetched = join(scratch, stdout.trim())
    const found = await readIntegrity(fetched)
    if (found !== integrity) {
      throw new Error(`${name} ${version} from npm is ${found}, and the lock file has ${integrity}`)
    }
    await rename(fetched, archive)
  } finally {
    await rm(scratch, { recursive: true })
  }
}
