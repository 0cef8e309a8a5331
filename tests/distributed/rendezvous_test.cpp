#include "rotrnn/distributed/rendezvous.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace rotrnn {
namespace {

using Map = std::map<std::string, std::string>;

Rendezvous rendezvous_of(const Map& set) {
  return find_rendezvous([&](const char* name) -> std::optional<std::string> {
    const auto found = set.find(name);
    if (found == set.end()) return {};
    return found->second;
  });
}

std::string error_of(const Map& set) {
  try {
    rendezvous_of(set);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Rendezvous, IsAloneWithoutVariables) {
  const Rendezvous rendezvous = rendezvous_of({});
  EXPECT_EQ(rendezvous.rank, 0);
  EXPECT_EQ(rendezvous.size, 1);
}

TEST(Rendezvous, OfTorchrunAndLaunch) {
  const Map set{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "99"}};
  const Rendezvous rendezvous = rendezvous_of(set);
  EXPECT_EQ(rendezvous.rank, 1);
  EXPECT_EQ(rendezvous.size, 4);
  EXPECT_EQ(rendezvous.master, "a");
  EXPECT_EQ(rendezvous.port, 99);
  EXPECT_FALSE(rendezvous.serves_store);
  Map first = set;
  first["RANK"] = "0";
  EXPECT_TRUE(rendezvous_of(first).serves_store);
  first["TORCHELASTIC_USE_AGENT_STORE"] = "True";  // torchrun keeps the store
  EXPECT_FALSE(rendezvous_of(first).serves_store);
  first["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_TRUE(rendezvous_of(first).serves_store);
}

TEST(Rendezvous, OfMpirun) {
  Map set{{"OMPI_COMM_WORLD_RANK", "2"},
          {"OMPI_COMM_WORLD_SIZE", "3"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
  const Rendezvous rendezvous = rendezvous_of(set);
  EXPECT_EQ(rendezvous.rank, 2);
  EXPECT_EQ(rendezvous.size, 3);
  EXPECT_EQ(rendezvous.master, "127.0.0.1");
  EXPECT_EQ(rendezvous.port, 29500);
  set["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_NE(error_of(set).find("MASTER_ADDR"), std::string::npos);
  set["MASTER_ADDR"] = "node1";
  set["MASTER_PORT"] = "3000";
  EXPECT_EQ(rendezvous_of(set).master, "node1");
  EXPECT_EQ(rendezvous_of(set).port, 3000);
}

TEST(Rendezvous, JobsOfOneMachineGetPortsOfTheirOwn) {
  Map one{{"OMPI_COMM_WORLD_RANK", "0"},
          {"OMPI_COMM_WORLD_SIZE", "2"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
          {"PMIX_NAMESPACE", "3472818177"}};
  Map two = one;
  two["PMIX_NAMESPACE"] = "3472818178";
  EXPECT_NE(rendezvous_of(one).port, rendezvous_of(two).port);
  two["PMIX_NAMESPACE"] = one["PMIX_NAMESPACE"];
  two["OMPI_COMM_WORLD_RANK"] = "1";
  EXPECT_EQ(rendezvous_of(one).port, rendezvous_of(two).port);
}

TEST(Rendezvous, OfSlurm) {
  Map set{{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_NODELIST", "gpu[03-07,12],x1"}};
  const Rendezvous rendezvous = rendezvous_of(set);
  EXPECT_EQ(rendezvous.rank, 5);
  EXPECT_EQ(rendezvous.size, 8);
  EXPECT_EQ(rendezvous.master, "gpu03");
  // A step may have fewer tasks than the job.
  set["SLURM_JOB_ID"] = "77";
  set["SLURM_STEP_ID"] = "0";
  set["SLURM_STEP_NUM_TASKS"] = "6";
  EXPECT_EQ(rendezvous_of(set).size, 6);
  // The batch script itself is not a task of srun.
  set.erase("SLURM_STEP_ID");
  EXPECT_EQ(rendezvous_of(set).size, 1);
}

TEST(Rendezvous, FirstHostOfSlurmLists) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("node1,node2"), "node1");
  EXPECT_EQ(first_host("n[1-4]"), "n1");
  EXPECT_EQ(first_host("n[007,010-012]-ib,z"), "n007-ib");
  EXPECT_EQ(first_host("r[1-2]c[03-05]"), "r1c03");
  for (const char* bad : {"", ",a", "n[1-2", "n[]", "n]1", "a b"}) {
    EXPECT_THROW(first_host(bad), std::invalid_argument) << bad;
  }
}

TEST(Rendezvous, RefusesHalfSetVariables) {
  EXPECT_NE(error_of({{"RANK", "0"}}).find("WORLD_SIZE is not"), std::string::npos);
  EXPECT_NE(error_of({{"WORLD_SIZE", "2"}}).find("RANK is not"), std::string::npos);
  const Map both{{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  EXPECT_NE(error_of(both).find("MASTER_ADDR is not"), std::string::npos);
  Map address = both;
  address["MASTER_ADDR"] = "a";
  EXPECT_NE(error_of(address).find("MASTER_PORT is not"), std::string::npos);
  EXPECT_NE(error_of({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}).find("RANK"), std::string::npos);
  EXPECT_NE(error_of({{"OMPI_COMM_WORLD_RANK", "0"}}).find("OMPI_COMM_WORLD_SIZE is not"),
            std::string::npos);
  EXPECT_NE(error_of({{"SLURM_PROCID", "0"}}).find("SLURM_NTASKS is not"), std::string::npos);
  EXPECT_NE(error_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}).find("MASTER_ADDR"),
            std::string::npos);
}

TEST(Rendezvous, RefusesContradictions) {
  const Map good{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  ASSERT_EQ(error_of(good), "");
  const std::pair<const char*, const char*> wrong[] = {
      {"RANK", "2"},
      {"RANK", "-1"},
      {"RANK", "x"},
      {"RANK", "1 "},
      {"WORLD_SIZE", "0"},
      {"MASTER_PORT", "0"},
      {"MASTER_PORT", "65536"},
      {"MASTER_PORT", "p"},
      {"WORLD_SIZE", "1e3"},
  };
  for (const auto& [name, value] : wrong) {
    Map set = good;
    set[name] = value;
    EXPECT_NE(error_of(set).find(name), std::string::npos) << name << "=" << value;
  }
  Map mixed = good;
  mixed["OMPI_COMM_WORLD_RANK"] = "0";
  mixed["OMPI_COMM_WORLD_SIZE"] = "2";
  EXPECT_NE(error_of(mixed).find("rank 1 of 2"), std::string::npos);
  EXPECT_NE(error_of(mixed).find("rank 0 of 2"), std::string::npos);
  mixed["OMPI_COMM_WORLD_RANK"] = "1";
  EXPECT_EQ(error_of(mixed), "");
}

}  // namespace
}  // namespace rotrnn
