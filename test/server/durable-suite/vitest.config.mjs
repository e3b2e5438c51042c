export default { test: { include: ["suite.ts"], testTimeout: 15_000, fileParallelism: false } };
