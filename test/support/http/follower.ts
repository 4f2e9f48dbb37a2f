/** A cache that follows another one, on loopback, in this process. */
import { once } from 'node:events'
import * as http from 'node:http'
import { createFollowed } from '../../../runtime/cache/follow/followed.ts'
import { createFollower } from '../../../runtime/cache/follow/follower.ts'
import { createFollowServer } from '../../../runtime/cache/follow/follow-server.ts'
import { createSources } from '../../../runtime/engine/image/sources/sources.ts'
import { createAssets } from '../../../runtime/kit/web/answers/assets.ts'
import { createEntrance } from '../../../runtime/kit/web/http/entrance.ts'
import { listen } from './hostile-server.ts'
import { QUIET } from '../server/image-cache.ts'

const now = () => new Date()

/** Milliseconds: nothing is silent for so long here, however busy the machine is. */
const STALL_MS = 120_000

interface FollowerOptions {
  readonly maxBytes?: number
  /** Milliseconds. */
  readonly elapsed?: () => number
  readonly warn?: (message: string) => void
}

export async function serveFollower(folder: string, base: string, options: FollowerOptions = {}) {
  const followed = createFollowed({ base, env: {}, stallMs: STALL_MS })
  const { elapsed, warn = () => undefined, maxBytes = 0 } = options
  const log = { ...QUIET, warn }
  const follower = await createFollower({
    folder,
    followed,
    sources: createSources({ env: {}, retryMs: 1, stallMs: STALL_MS }),
    maxBytes: () => maxBytes,
    now,
    log,
    againMs: 1,
    ...(elapsed === undefined ? {} : { elapsed }),
  })
  const { app } = createFollowServer({
    follower,
    base,
    assets: await createAssets(),
    version: '1.2.3',
    log,
  })
  const server = http.createServer(createEntrance(app, QUIET))
  const port = await listen(server)
  return {
    base: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
      await follower[Symbol.asyncDispose]()
      await followed[Symbol.asyncDispose]()
    },
  }
}
