/** What the server counts of itself, and how it tells it (`GET /metrics`, Prometheus text). */

export interface Metrics {
  /** Adds one (or `by`) to a counter; labels from short closed lists, never a MAC. */
  count(name: string, labels?: Readonly<Record<string, string>>, by?: number): void
  /** One measured time, in seconds. */
  observe(name: string, seconds: number, labels?: Readonly<Record<string, string>>): void
}
