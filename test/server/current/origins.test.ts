/** The real server: where it is switched on, plans name the bucket and the registry that an image comes from. */
import { createHash } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { makeBytes } from '#test/support/collect.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { digestOf, pushImage, startRegistry } from '#test/support/http/registry.ts'
import { startBucket } from '#test/support/http/s3-bucket.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { until } from '#test/support/server/image-cache.ts'
import { createAsk } from '#test/support/server/lab.ts'

const test = suite('origins in plans')
const BYTES = makeBytes(300_001)
const sha256 = createHash('sha256').update(BYTES).digest('hex')
const Plan = z.object({
  image: z.string(),
  sources: z.array(z.object({ url: z.string() })).optional(),
})

/** A machine whose flash is ordered, and what its plan names. */
async function order(url: string, cookie: string, mac: string, src: string) {
  const ask = createAsk(url, cookie)
  const ref = refOf(src)
  const disk = { path: '/dev/sda', size: '8G', size_bytes: 8e9, model: 'm', serial: 'S1' }
  await ask(`/machines/${mac}`, {
    boot_mode: 'flasher-flash-always',
    bty_image_ref: ref.ok ? ref.value : null,
    target_disk_serial: 'S1',
  }, 'PUT') // prettier-ignore
  await ask(`/pxe/${mac}/inventory`, { disks: [disk] })
  return async (features: string) =>
    Plan.parse(await ask(`/pxe/${mac}/plan?features=disk-id,${features}`))
}

test('a bucket by a signed address, a registry by the address of the bytes, and no secret anywhere else', async () => {
  await using registry = await startRegistry()
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img' }])
  await using bucket = await startBucket()
  bucket.objects.set('disk.img', BYTES)
  const [object, tag] = ['s3://lab/disk.img', `oras://${registry.host}/lab/disk:v1`]
  const entries = [object, tag].map((src, index) => ({
    name: `disk-${index}`, src, format: 'img', sha256, size_bytes: BYTES.length,
  })) // prettier-ignore
  await using cache = await startHostileServer((_request, response) =>
    response.end(JSON.stringify({ entries })),
  )
  await using home = await createServerHome()
  await using server = await home.start([], {
    FLASHER_ADMIN_PASSWORD: 'a password',
    FLASHER_WITHCACHE_URL: cache.origin,
    FLASHER_SOURCES_ORIGINS: 'true',
    FLASHER_S3_ENDPOINT: bucket.origin,
    FLASHER_S3_ACCESS_KEY: 'lab-key',
    FLASHER_S3_SECRET_KEY: bucket.secret,
    FLASHER_LOG_LEVEL: 'debug',
  })
  let logged = ''
  server.child.stderr?.on('data', (text: string) => {
    logged += text
  })
  const { cookie } = await login(server.url, 'a password')
  const fromBucket = await order(server.url, cookie, '52:54:00:00:00:01', object)
  const fromRegistry = await order(server.url, cookie, '52:54:00:00:00:02', tag)
  await until(async () => {
    const plans = [await fromBucket('sources'), await fromRegistry('sources')]
    return plans.every(({ sources }) => sources !== undefined)
  })
  const [one, other] = [await fromBucket('sources'), await fromRegistry('sources')]
  assert.ok(one.image.startsWith(cache.origin))
  const signed = one.sources?.[0]?.url ?? ''
  assert.ok(signed.startsWith(`${bucket.origin}/lab/disk.img?`))
  assert.ok(BYTES.equals(Buffer.from(await (await fetch(signed)).arrayBuffer())))
  const [, signature = 'none'] = /X-Amz-Signature=(\w+)/.exec(signed) ?? []
  const blob = `http://${registry.host}/v2/lab/disk/blobs/${digestOf(BYTES)}`
  assert.equal(other.sources, [{ url: blob }])
  // Who does not announce sources gets the plan that it always got.
  assert.is((await fromBucket('first-boot')).sources, undefined)
  const shown = await Promise.all(
    ['/events', '/machines', '/images', '/catalog.toml', '/ui/images', '/ui/settings', '/ui/events'].map(
      async (path) => (await fetch(`${server.url}${path}`, { headers: { cookie } })).text(),
    ),
  ) // prettier-ignore
  const all = [...shown, server.stdout(), logged].join('\n')
  for (const secret of [signature, bucket.secret]) assert.not.ok(all.includes(secret))
})

test.run()
