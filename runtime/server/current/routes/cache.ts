/** `POST /admin/cache/refresh`: fetches the catalog now. */
import type { H3Event } from 'h3'
import type { Site } from '#server/routes/site.ts'
import { nothing, seeOther } from '#kit/web/answers/answers.ts'
import type { Route } from '#kit/web/answers/route.ts'

/** Answers after the fetch, so that the next page shows the result. */
export const cacheRoutes = (site: Site): readonly Route[] => [
  {
    method: 'POST',
    path: '/admin/cache/refresh',
    access: 'admin',
    doc: {
      summary: 'Fetch the catalog of the cache service now',
      answers: { 204: null, 303: null },
    },
    async handle(event) {
      await refresh(site, event)
      const isForJson = event.req.headers.get('accept')?.includes('application/json') === true
      return isForJson ? nothing() : seeOther('/ui/machines')
    },
  },
]

async function refresh({ catalog, journal, by }: Site, event: H3Event) {
  const { entries, skipped, error } = await catalog.refresh()
  const { actor, ip } = by(event)
  await journal.record({
    kind: error === null ? 'catalog.refreshed' : 'catalog.refresh.failed',
    subject_kind: 'catalog',
    subject_id: null,
    actor,
    source_ip: ip,
    summary: error ?? `The catalog was fetched: ${entries.length} images${renderLeftOut(skipped)}`,
    details: {
      images: entries.length,
      skipped: skipped.length,
      left_out: skipped.slice(0, MAX_NAMED).map(({ name, reason }) => `${name}: ${reason}`),
      error,
    },
  })
}

/** A broken catalog can have thousands. */
const MAX_NAMED = 20

const renderLeftOut = ({ length }: readonly unknown[]) =>
  length === 0 ? '' : `, ${length} left out`
