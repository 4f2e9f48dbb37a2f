/** One call of `flasher-web flash` in a lab, and the machine behind a BMC that it turns on. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { DISK_SERIAL, LAB_MAC, LAB_SERVER, type Lab } from '../server/lab.ts'
import { collectWords, waitUntil } from '../waiting.ts'

const PROGRAM = fileURLToPath(new URL('../../../runtime/bin/flasher-web.mjs', import.meta.url))

/** The server controls the power of what is on its loopback, and waits for first boots. */
export const ONE_CALL = {
  FLASHER_POWER_NETWORKS: '127.0.0.0/8',
  FLASHER_PROOF_ENABLED: 'true',
}

const EndSchema = z.object({
  outcome: z.string(),
  proof: z
    .object({ how: z.string().nullable(), contacts: z.int(), reason: z.string().nullable() })
    .nullish(),
})
const WaterfallSchema = z.object({
  waterfall: z.object({
    bars: z.array(z.object({ part: z.string(), seconds: z.number() })),
    seconds: z.number(),
    unattributed_seconds: z.number(),
  }),
})

const ImagesSchema = z.array(z.object({ name: z.string() }))

/** The machine has a first-boot template, a BMC, and nobody ever saw it; `images` are offered. */
export async function introduce(
  { ask, said }: Lab,
  bmc: object,
  images: readonly string[],
): Promise<void> {
  await waitUntil(async () => {
    const offered = ImagesSchema.parse(await ask('/images')).map(({ name }) => name)
    return images.every((image) => offered.includes(image))
  }, said)
  await ask('/first-boot/web', { hostname: 'proved', commands: ['true'] }, 'PUT')
  await assign(ask, 'web')
  const credential = { user: 'admin', password: 's3cret' }
  await ask(`/machines/${LAB_MAC}/power`, { ...bmc, credential }, 'PUT')
}

/** What the machine is to be, but for its image; `template` null: what is flashed calls nobody. */
export const assign = (ask: Lab['ask'], template: string | null) =>
  ask(
    `/machines/${LAB_MAC}`,
    {
      boot_mode: 'flasher-flash-once',
      target_disk_serial: DISK_SERIAL,
      first_boot: template,
    },
    'PUT',
  )

/** The command, as a script would have it; resolves to its exit code and what it said at the end. */
export async function callFlash({ ask, namespace, said }: Lab, ...more: readonly string[]) {
  const scopes = ['read', 'flash', 'power']
  const made = z
    .object({ token: z.string() })
    .parse(await ask('/tokens', { name: `ci ${more.join(' ')}`, scopes }))
  const words = [PROGRAM, 'flash', LAB_MAC, '--server', LAB_SERVER, '--until', 'booted', '--json']
  const child = namespace.spawn([process.execPath, ...words, ...more], {
    FLASHER_TOKEN: made.token,
  })
  let out = ''
  child.stdout?.on('data', (piece: Buffer) => void (out += piece.toString()))
  const told = collectWords(child)
  const [code] = await once(child, 'close')
  if (!out.startsWith('{')) throw new Error(`it ended with ${code}: ${told()}\n${said()}`)
  return { code, ...EndSchema.parse(JSON.parse(out)), told: told() }
}

/** Where the time of the machine's newest run went. */
export async function readWaterfall({ ask }: Lab) {
  const { runs } = z
    .object({ runs: z.array(z.object({ id: z.string() })) })
    .parse(await ask(`/machines/${LAB_MAC}/runs?limit=1`))
  const run = await ask(`/machines/${LAB_MAC}/runs/${runs[0]?.id}`)
  return WaterfallSchema.parse(run).waterfall
}

/** An image whose boot sector restarts the machine at once: `jmp 0xffff:0`. Resolves to its path. */
export async function makeBrokenImage(folder: string): Promise<string> {
  const image = Buffer.alloc(8 * 2 ** 20)
  Buffer.from('ea0000ffff', 'hex').copy(image)
  image.writeUInt16BE(0x55aa, 510)
  const path = join(folder, 'broken.img')
  await writeFile(path, image)
  return path
}

/** The image in a form that needs less time on the wire. */
export async function packImage(path: string, to: string): Promise<string> {
  const child = spawn('zstd', ['-q', '-1', path, '-o', to], { stdio: 'ignore' })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`zstd ended with ${code}`)
  return to
}
