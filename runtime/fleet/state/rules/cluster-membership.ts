/** Where a `state.db` stands that follows a database which several servers share. */

export interface ClusterMembership {
  /** Random, from when the tables were made. */
  readonly cluster: string
  /** The file's newest change: number and id. */
  readonly seq: number
  readonly change: string
}
