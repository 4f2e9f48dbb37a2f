/** Computes which rows of a long list a page shows. */

/** Rows of a page of the machines table. */
export const PAGE_ROWS = 100

export interface PageOfRows<Row> {
  readonly rows: readonly Row[]
  /** The number of the page from 1; it is never past the last. */
  readonly page: number
  readonly pages: number
  readonly total: number
}

/**
 * Returns the rows of one page by the parameter `page`, from 1; anything else means the first page.
 */
export function cutPage<Row>(rows: readonly Row[], query: URLSearchParams): PageOfRows<Row> {
  const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS))
  const requested = /^\d{1,6}$/.test(query.get('page') ?? '') ? Number(query.get('page')) : 1
  const page = Math.min(pages, Math.max(1, requested))
  return {
    rows: rows.slice((page - 1) * PAGE_ROWS, page * PAGE_ROWS),
    page,
    pages,
    total: rows.length,
  }
}
