import torch
from small import told
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

if __name__ == "__main__":
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=torch.full((2, 4), i / 48), edge_index=edges) for i in range(48)]
    total = 0.0
    loader = DataLoader(graphs, batch_size=4, shuffle=True)
    for _ in range(2):
        for number, batch in enumerate(loader):
            total += float(batch.x.sum()) * number
    told(total)
