/** GET /static/<name>@<version>/<file>: open to all, cached by browsers forever. */
import { chooseCoding } from '../answers/rules/content-coding.ts'
import type { Assets } from '../answers/assets.ts'
import { answer } from '../answers/answers.ts'
import { refuse } from '../answers/faults.ts'
import type { Route } from '../answers/route.ts'

const PREFIX = '/static/'

export const assetRoute = (assets: Assets): Route => ({
  method: 'GET',
  path: '/static/**',
  access: 'open',
  async handle(event) {
    const asset = assets.find(event.url.pathname.slice(PREFIX.length))
    if (asset === null) throw refuse(404, 'Not Found')
    const { coding } = chooseCoding(event.req.headers.get('accept-encoding'))
    const headers = {
      'content-type': asset.type,
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
    }
    if (coding === null) return answer(200, headers, asset.bytes)
    return answer(200, { ...headers, 'content-encoding': coding }, await asset.encoded(coding))
  },
})
