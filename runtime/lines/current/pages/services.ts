/** What pages show beside machines: settings, boot releases, backups and the network. */

/** Grows with the pages; what is absent is not there yet. */
export interface PageServices {
  /** The addresses at which machines can reach this host. */
  listAddresses?(): readonly string[]
}
